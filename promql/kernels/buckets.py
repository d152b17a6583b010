"""Quantiles and fractions of classic histograms, for each group of buckets and each step.

The buckets of a group are sorted by their upper bounds. They are rows of a matrix of cumulative counts. Counts are
collected for each step: a bucket without a sample at a step is ignored at that step.
"""

import math

import numpy as np
from numba import njit

from strandline.promql.kernels.no_sample import NO_SAMPLE_BITS

MIN_NORMAL, MAX_FLOAT = 2.2250738585072014e-308, 1.7976931348623157e308
# Counts whose difference relative to their sum is smaller are equal: they differ only by rounding.
TOLERANCE = 1e-12


@njit(cache=True, nogil=True)
def _collect_buckets(bits, values, rows, bounds, start, end, step, upper, counts):
    """Collect bounds and counts of the buckets that have a sample. Buckets with equal bounds are added. Returns their
    number.
    """
    found = 0
    for position in range(start, end):
        row = rows[position]
        if bits[row, step] == NO_SAMPLE_BITS:
            continue
        if found and upper[found - 1] == bounds[position]:
            counts[found - 1] += values[row, step]
        else:
            upper[found] = bounds[position]
            counts[found] = values[row, step]
            found += 1
    return found


@njit(cache=True, nogil=True)
def _almost_equal(one, other):
    if (math.isnan(one) and math.isnan(other)) or one == other:
        return True
    total, difference = abs(one) + abs(other), abs(one - other)
    if one == 0.0 or other == 0.0 or total < MIN_NORMAL:
        return difference < TOLERANCE * MIN_NORMAL
    return difference / min(total, MAX_FLOAT) < TOLERANCE


@njit(cache=True, nogil=True)
def _force_monotonic(upper, counts, found, figures):
    """Make counts monotonic: raise counts that are below the previous one, and set almost equal ones to it. Returns
    whether any difference was larger than rounding; `figures` gets the lowest and the highest bucket concerned, and the
    largest difference.
    """
    was_forced = False
    before = counts[0]
    for bucket in range(1, found):
        count = counts[bucket]
        if count == before:
            continue
        # Fast path without a division: most counts rise by far more than rounding errors.
        if before >= 0.0 and count - before > 10.0 * TOLERANCE * count:
            before = count
        elif _almost_equal(before, count):
            counts[bucket] = before
        elif count < before:
            counts[bucket] = before
            was_forced = True
            figures[0] = min(figures[0], upper[bucket])
            figures[1] = max(figures[1], upper[bucket])
            figures[2] = max(figures[2], before - count)
        else:
            before = count
    return was_forced


@njit(cache=True, nogil=True, error_model="numpy")
def _quantile(quantile, upper, counts, found):
    """The quantile of at least two buckets, the last of which is +Inf: linear interpolation within the bucket."""
    last = found - 1
    if counts[last] == 0.0:
        return np.nan
    rank = quantile * counts[last]
    low, high = 0, last
    while low < high:
        middle = (low + high) >> 1
        if counts[middle] >= rank:
            high = middle
        else:
            low = middle + 1
    if low == last:
        return upper[last - 1]
    if low == 0 and upper[0] <= 0.0:
        return upper[0]
    start, below = 0.0, 0.0
    if low:
        start, below = upper[low - 1], counts[low - 1]
    return start + (upper[low] - start) * ((rank - below) / (counts[low] - below))


@njit(cache=True, nogil=True)
def quantile_rows(bits, values, rows, bounds, first_bucket, quantiles, out, figures, forced_steps):
    """Row g of `out` gets the quantile for each step, from the buckets `rows[first_bucket[g] : first_bucket[g + 1]]`.
    `forced_steps` counts for each step the groups whose counts had to be made monotonic.
    """
    out_bits = out.view(np.uint64)
    max_buckets = 0
    for group in range(out.shape[0]):
        max_buckets = max(max_buckets, first_bucket[group + 1] - first_bucket[group])
    upper, counts = np.empty(max_buckets, dtype=np.float64), np.empty(max_buckets, dtype=np.float64)
    for group in range(out.shape[0]):
        start, end = first_bucket[group], first_bucket[group + 1]
        for step in range(out.shape[1]):
            found = _collect_buckets(bits, values, rows, bounds, start, end, step, upper, counts)
            quantile = quantiles[step]
            if found == 0:
                out_bits[group, step] = NO_SAMPLE_BITS
            elif math.isnan(quantile):
                out[group, step] = np.nan
            elif quantile < 0.0:
                out[group, step] = -np.inf
            elif quantile > 1.0:
                out[group, step] = np.inf
            elif upper[found - 1] != np.inf:
                out[group, step] = np.nan
            else:
                if _force_monotonic(upper, counts, found, figures):
                    forced_steps[step] += 1
                out[group, step] = np.nan if found < 2 else _quantile(quantile, upper, counts, found)


@njit(cache=True, nogil=True, error_model="numpy")
def _rank(bound, upper, counts, found):
    """The number of observations below a bound, with linear interpolation within its bucket. A bucket whose lower bound
    is -Inf counts in full.
    """
    rank = 0.0
    low = 0.0 if upper[0] > 0.0 else -np.inf
    for bucket in range(found):
        if bucket:
            low = upper[bucket - 1]
        if low >= bound:
            return rank
        if upper[bucket] > bound:
            if low == -np.inf:
                return counts[bucket]
            return rank + (counts[bucket] - rank) * (bound - low) / (upper[bucket] - low)
        rank = counts[bucket]
    return counts[found - 1]


@njit(cache=True, nogil=True, error_model="numpy")
def _fraction(lower, upper_bound, upper, counts, found):
    total = counts[found - 1]
    if upper[found - 1] != np.inf or total == 0.0 or math.isnan(lower) or math.isnan(upper_bound):
        return np.nan
    if lower >= upper_bound:
        return 0.0
    below, up_to = _rank(lower, upper, counts, found), _rank(upper_bound, upper, counts, found)
    # Counts may be non-monotonic here.
    return (np.minimum(up_to, total) - np.minimum(below, total)) / total


@njit(cache=True, nogil=True)
def fraction_rows(bits, values, rows, bounds, first_bucket, lower, upper_bound, out):
    """Row g of `out` gets the fraction of observations between two bounds for each step, from the group's buckets."""
    out_bits = out.view(np.uint64)
    max_buckets = 0
    for group in range(out.shape[0]):
        max_buckets = max(max_buckets, first_bucket[group + 1] - first_bucket[group])
    upper, counts = np.empty(max_buckets, dtype=np.float64), np.empty(max_buckets, dtype=np.float64)
    for group in range(out.shape[0]):
        start, end = first_bucket[group], first_bucket[group + 1]
        for step in range(out.shape[1]):
            found = _collect_buckets(bits, values, rows, bounds, start, end, step, upper, counts)
            if found == 0:
                out_bits[group, step] = NO_SAMPLE_BITS
            else:
                out[group, step] = _fraction(lower[step], upper_bound[step], upper, counts, found)
