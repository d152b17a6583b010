"""Copying runs of bytes together."""

from numba import njit


@njit(cache=True, nogil=True)
def gather_runs(data, starts, ends, out):
    """Copy the runs `data[starts[i] : ends[i]]` one behind the other into `out`, which is just as long as they are."""
    at = 0
    for run in range(len(starts)):
        length = ends[run] - starts[run]
        out[at : at + length] = data[starts[run] : ends[run]]
        at += length
