"""Compiled code: numba kernels that write the bytes of remote read's answers.

Kernels take the addresses of an answer's columns and of an output array, and return positions. They do not check a
bound for each byte: each documents how much room it needs for the next element, and stops before an element that may
not fit. They must not know HTTP or snappy.
"""
