"""The numba kernels that parse records.

In: addresses of bytes, options as numbers, and columns to fill. Out: filled columns. A kernel whose columns are full
returns which of them are, with its cursor at the record that it could not finish, and is called again with longer
columns. `end` is always exclusive: functions do not read at or beyond it.
"""
