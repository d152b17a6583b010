"""Compiled code of the API: numba kernels that write columns as JSON.

As in `strandline.wire.kernels`, functions have no annotations; their docstrings describe arguments and results. Text is
written into an array that is always long enough, from a position on; each function returns the position after it. The
kernels must not know HTTP.
"""
