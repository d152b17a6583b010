"""Compiled code: numba kernels over the bytes of messages.

In go arrays of bytes and bounds, out go numbers and filled arrays. Functions here carry no annotations, because numba
infers machine types for which Python's have no words; what each takes and gives stands in its docstring. Nothing here
knows of snappy, of Python objects, or of what the columns are for.
"""
