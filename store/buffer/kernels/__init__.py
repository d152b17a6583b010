"""Compiled kernels of the write buffer, over rows of samples and runs of series.

As in the other `kernels` packages, functions have no annotations; their docstrings describe parameters and results.
Values are passed as their 64 bits, so that a NaN keeps its payload. Arithmetic on times wraps: any 64 bits are a time,
and encoding and decoding wrap alike. Kernels don't check bounds unless their docstrings state it.
"""
