"""Compiled kernels of the index, over arrays of key hashes and part ids.

As in `strandline.wire.kernels`, functions have no annotations; their docstrings describe parameters and results.
"""
