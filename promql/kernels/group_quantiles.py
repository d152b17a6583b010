"""The aggregation `quantile` for each group and step, by selection (quickselect) instead of sorting.

"No sample" is recognised by its bits.
"""

import numpy as np
from numba import njit

from strandline.promql.values import NO_SAMPLE, NO_SAMPLE_BITS

NONE = np.int64(NO_SAMPLE_BITS)
NO_VALUE = np.float64(NO_SAMPLE)
U64 = np.uint64


@njit(cache=True, nogil=True)
def _select(values, first, end, wanted, state):
    """Quickselect: move the values so that the one at `wanted` is the same as after sorting, with no larger value
    before it and no smaller one after it. Pivots are random, so that no order of values is slow. Returns the state of
    the random generator.
    """
    while end - first > 1:
        state ^= state << U64(13)
        state ^= state >> U64(7)
        state ^= state << U64(17)
        pivot = values[first + np.int64(state % U64(end - first))]
        low, high = first, end - 1
        while low <= high:
            while values[low] < pivot:
                low += 1
            while values[high] > pivot:
                high -= 1
            if low <= high:
                values[low], values[high] = values[high], values[low]
                low += 1
                high -= 1
        if wanted <= high:
            end = high + 1
        elif wanted >= low:
            first = low
        else:
            break
    return state


@njit(cache=True, nogil=True)
def _quantile(values, count, nans, quantile, state):
    """The quantile of values, of which the first `nans` are NaN. NaN is below all numbers."""
    if np.isnan(quantile):
        return np.nan, state
    if quantile < 0.0:
        return -np.inf, state
    if quantile > 1.0:
        return np.inf, state
    rank = quantile * (count - 1.0)
    lower = max(0.0, np.floor(rank))
    upper = min(count - 1.0, lower + 1.0)
    weight = rank - np.floor(rank)
    low, high = np.int64(lower), np.int64(upper)
    if low >= nans:
        state = _select(values, nans, count, low, state)
    minimum = values[low]
    if high != low:
        start = max(high, nans)
        least_behind = values[start]
        for i in range(start + 1, count):
            least_behind = min(least_behind, values[i])
        above = np.nan if high < nans else least_behind
    else:
        above = minimum
    return minimum * (1.0 - weight) + above * weight, state


@njit(cache=True, nogil=True)
def quantiles(values, bits, by_group, first_of_group, wanted, out):
    """The quantile `wanted[step]` of each group and step."""
    steps = values.shape[1]
    state = U64(0x9E3779B97F4A7C15)
    for group in range(len(first_of_group) - 1):
        first, end = first_of_group[group], first_of_group[group + 1]
        columns = np.empty((steps, end - first), dtype=np.float64)
        sizes, nans = np.zeros(steps, dtype=np.int64), np.zeros(steps, dtype=np.int64)
        for position in range(first, end):
            row = by_group[position]
            for step in range(steps):
                if bits[row, step] == NONE:
                    continue
                value, size = values[row, step], sizes[step]
                if np.isnan(value):
                    columns[step, size] = columns[step, nans[step]]
                    size = nans[step]
                    nans[step] += 1
                columns[step, size] = value
                sizes[step] += 1
        for step in range(steps):
            if sizes[step] == 0:
                out[group, step] = NO_VALUE
            else:
                out[group, step], state = _quantile(columns[step], sizes[step], nans[step], wanted[step], state)
