"""Copies ranges of bytes together."""

from numba import njit


@njit(cache=True, nogil=True)
def gather_runs(data, starts, ends, out):
    """Copy the ranges `data[starts[i]:ends[i]]` one after the other into `out`, which has exactly their total
    length.
    """
    at = 0
    for run in range(len(starts)):
        length = ends[run] - starts[run]
        out[at : at + length] = data[starts[run] : ends[run]]
        at += length
