"""Compiled code of the store: numba kernels over the columns of runs and segments.

Times, values and key hashes flow in as arrays and come out as arrays that compress well, and back. Kernels know nothing
of bytes, rows or checksums. As in the other `kernels` packages, functions carry no annotations; what each takes and
gives stands in its docstring.
"""
