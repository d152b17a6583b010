"""Compiled code of the write buffer: numba kernels over rows of samples and runs of series.

As in the other `kernels` packages, functions carry no annotations; what each takes and gives stands in its docstring.
Values pass through as the 64 bits that they are, so that a NaN keeps its payload. All arithmetic on times wraps: any
64 bits are a time, and what wraps on the way in wraps back on the way out. No kernel checks bounds unless it says so.
"""
