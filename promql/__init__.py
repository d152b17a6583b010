"""PromQL: the language, plans, and evaluation over columns. Pure: no I/O and no clock.

Text becomes an expression (`parser`, `expressions`), checked before anything is read. A plan resolves its times and
cuts it into fragments, which are evaluated where the samples are, and a rest. Evaluation is over matrices of series by
steps (`values`), with kernels that numba compiles. It must not know the store, the node or HTTP.
"""
