"""Samples without some of them, and the cells of a matrix as samples. All go by bits: NaNs have meanings."""

import numpy as np
from numba import njit

from strandline.promql.values import NAN_BITS, NO_SAMPLE_BITS, STALE_BITS


@njit(cache=True, nogil=True)
def count_stale(value):
    """How many are stale markers."""
    bits = value.view(np.int64)
    found = 0
    for at in range(len(bits)):
        found += bits[at] == STALE_BITS
    return found


@njit(cache=True, nogil=True)
def drop_stale(first_sample, time, value, kept_first, kept_time, kept_value):
    """Copy all but stale markers; `kept_first` gets where each series begins."""
    bits, kept_bits = value.view(np.int64), kept_value.view(np.int64)
    kept = 0
    for series in range(len(first_sample) - 1):
        kept_first[series] = kept
        for at in range(first_sample[series], first_sample[series + 1]):
            if bits[at] != STALE_BITS:
                kept_time[kept] = time[at]
                kept_bits[kept] = bits[at]
                kept += 1
    kept_first[len(first_sample) - 1] = kept


@njit(cache=True, nogil=True)
def _is_odd_nan(number, bits):
    return number != number and bits != STALE_BITS and bits != NAN_BITS  # noqa: PLR0124 - NaN differs from itself


@njit(cache=True, nogil=True)
def count_odd_nans(value):
    """How many are NaNs other than the stale marker and the one that stands for all others."""
    bits = value.view(np.int64)
    found = 0
    for at in range(len(value)):
        found += _is_odd_nan(value[at], bits[at])
    return found


@njit(cache=True, nogil=True)
def make_canonical(value):
    """Replace those NaNs in place."""
    bits = value.view(np.int64)
    for at in range(len(value)):
        if _is_odd_nan(value[at], bits[at]):
            bits[at] = NAN_BITS


@njit(cache=True, nogil=True)
def gather_cells(values, start, step, first_sample, time, value):
    """Write the cells of a matrix that have a sample; `time` and `value` have room for all. How many there are."""
    series_count, count = values.shape
    cell_bits = values.view(np.int64)
    bits = value.view(np.int64)
    found = 0
    for series in range(series_count):
        first_sample[series] = found
        for at in range(count):
            if cell_bits[series, at] != NO_SAMPLE_BITS:
                time[found] = start + at * step
                bits[found] = cell_bits[series, at]
                found += 1
    first_sample[series_count] = found
    return found
