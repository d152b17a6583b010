"""Compiled code of the index: numba kernels over arrays of key hashes and part ids.

As in `strandline.wire.kernels`, functions carry no annotations; what each takes and gives stands in its docstring.
"""
