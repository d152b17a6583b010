"""Compiled code: numba kernels that walk the text of records.

In go addresses of bytes, options as numbers, and columns with room; out go filled columns. A kernel that runs out of
room returns what it lacks, with its cursor at the record that it could not finish, and is called again with longer
columns. Every function takes the address of the first byte that is not its own (`end`) and reads nothing from there on.
"""
