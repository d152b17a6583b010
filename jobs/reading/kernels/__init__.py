"""The numba kernels over part keys and labels. They do not validate their input."""
