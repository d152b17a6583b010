"""Numba kernels over part keys and labels; no types, no checks of what is sound."""
