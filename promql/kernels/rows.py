"""Counts the samples of matrix rows, and copies them as points."""

import numpy as np
from numba import njit

from strandline.promql.values import NO_SAMPLE_BITS

_NONE = np.uint64(NO_SAMPLE_BITS)


@njit(cache=True, nogil=True)
def count_cells(bits, counts):
    """The number of samples in each row."""
    for row in range(bits.shape[0]):
        found = 0
        for step in range(bits.shape[1]):
            found += bits[row, step] != _NONE
        counts[row] = found


@njit(cache=True, nogil=True)
def compact(bits, rows, start, step, time, value):
    """Copy the samples of some rows, row by row, with the times of their steps."""
    at = 0
    for row in rows:
        for column in range(bits.shape[1]):
            if bits[row, column] != _NONE:
                time[at] = start + column * step
                value[at] = bits[row, column]
                at += 1
