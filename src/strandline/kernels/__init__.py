"""Machine words and hashes for the kernels of every package.

Kernels are compiled by numba, which infers the types: nothing here or in the other `kernels` packages is annotated.
"""
