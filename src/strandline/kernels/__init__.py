"""Machine operations and hashes for the numba kernels of every package.

numba infers types, so the functions in `kernels` packages have no annotations.
"""
