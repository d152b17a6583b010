"""The PromQL engine: parser, planner and columnar evaluation. It does no I/O and reads no clock.

In: the text of a query and its times (`plan.query_times`), and the samples that the query's fragments select.
Out: a `Result` (`evaluation.results`) with values, warnings and infos.

The parser turns the text into a type-checked tree (`parser`, `expressions`). The planner makes all times absolute and
divides the tree into fragments, which shards evaluate next to their samples, and a rest, which the front evaluates
(`plan`). Evaluation works on matrices of series by steps (`values`), with kernels that numba compiles (`kernels`).
`engine` connects these steps; `local` runs them over series in memory.

This package must not know the store, the node or HTTP.
"""
