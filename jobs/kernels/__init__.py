"""The numba kernels that all kinds of jobs share."""
