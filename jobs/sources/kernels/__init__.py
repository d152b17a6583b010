"""The numba kernels over the bytes of sources."""
