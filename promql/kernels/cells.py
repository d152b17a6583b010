"""Kernels over samples and matrix cells. They compare bits, because different NaNs have different meanings."""

import numpy as np
from numba import njit

from strandline.promql.values import NAN_BITS, NO_SAMPLE_BITS, STALE_BITS


@njit(cache=True, nogil=True)
def count_stale(value):
    """The number of staleness markers."""
    bits = value.view(np.int64)
    found = 0
    for at in range(len(bits)):
        found += bits[at] == STALE_BITS
    return found


@njit(cache=True, nogil=True)
def drop_stale(first_sample, time, value, kept_first, kept_time, kept_value):
    """Copy all samples except staleness markers. `kept_first` gets the start of each series."""
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
    """The number of NaNs other than the staleness marker and `NAN_BITS`."""
    bits = value.view(np.int64)
    found = 0
    for at in range(len(value)):
        found += _is_odd_nan(value[at], bits[at])
    return found


@njit(cache=True, nogil=True)
def make_canonical(value):
    """Replace these NaNs by `NAN_BITS` in place."""
    bits = value.view(np.int64)
    for at in range(len(value)):
        if _is_odd_nan(value[at], bits[at]):
            bits[at] = NAN_BITS


@njit(cache=True, nogil=True)
def cells_to_samples(values, start, step, first_sample, time, value):
    """Write the cells of a matrix that have a sample to `time` and `value`, which are large enough for all cells.
    Returns their number.
    """
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
