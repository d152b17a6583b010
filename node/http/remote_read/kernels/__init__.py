"""Compiled code: numba kernels that write the bytes of remote read's answers.

In go the addresses of an answer's columns and of an array to fill, out go positions. No kernel checks a bound for each
byte: each says how much room it needs for what it puts next, and stops before what would not fit. Nothing here knows
of HTTP or of snappy.
"""
