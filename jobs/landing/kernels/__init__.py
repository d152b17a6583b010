"""The numba kernels of landing: they sort samples, and encode columns as remote-write requests."""
