"""Compiled code: numba kernels over the bytes of messages.

Inputs are arrays of bytes and bounds; outputs are numbers and filled arrays. Functions have no annotations, because
numba infers machine types that Python's annotations can't express; the docstrings describe parameters and results.
Nothing here knows snappy, Python objects, or what the columns are used for.
"""
