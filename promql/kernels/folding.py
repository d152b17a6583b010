"""Aggregations over series: rows of values are folded into the rows of their groups, step by step.

Values are passed as doubles and as bits, by which "no sample" is recognised. The loop over the steps of a row has no
branches, so that it vectorises. Sums are compensated as in Prometheus (Kahan and Neumaier); an infinite sum has no
compensation.
"""

import numpy as np
from numba import njit

from strandline.promql.values import NO_SAMPLE_BITS

NONE = np.int64(NO_SAMPLE_BITS)


@njit(cache=True, nogil=True, inline="always")
def _added(value, total, compensation):
    """A sum and its compensation after adding a value."""
    new = total + value
    lost = (total - new) + value if abs(total) >= abs(value) else (value - new) + total
    return new, 0.0 if abs(new) == np.inf else compensation + lost


@njit(cache=True, nogil=True)
def fold_sum(values, bits, group_of, totals, compensations, counts):
    for series in range(len(group_of)):
        group = group_of[series]
        value, bit = values[series], bits[series]
        total, compensation, count = totals[group], compensations[group], counts[group]
        for step in range(len(value)):
            new, lost = _added(value[step], total[step], compensation[step])
            there = bit[step] != NONE
            total[step] = new if there else total[step]
            compensation[step] = lost if there else compensation[step]
            count[step] += 1.0 if there else 0.0


@njit(cache=True, nogil=True)
def merge_sum(other_totals, other_compensations, other_counts, group_of, totals, compensations, counts):
    for row in range(len(group_of)):
        group = group_of[row]
        for step in range(totals.shape[1]):
            if other_counts[row, step]:
                total, lost = _added(other_totals[row, step], totals[group, step], compensations[group, step])
                totals[group, step] = total
                compensations[group, step] = 0.0 if abs(total) == np.inf else lost + other_compensations[row, step]
                counts[group, step] += other_counts[row, step]


@njit(cache=True, nogil=True, error_model="numpy")
def _average(value, total, compensation, count, is_mean):
    """Add a value to an average, which is kept as a total, or as a running mean once the total would be infinite."""
    if count == 0.0:
        return value, 0.0, 1.0, 0.0
    new_count = count + 1.0
    if is_mean == 0.0:
        new, lost = _added(value, total, compensation)
        if abs(new) != np.inf:
            return new, lost, new_count, 0.0
        total, compensation = total / count, compensation / count
    share = count / new_count
    mean, lost = _added(value / new_count, share * total, share * compensation)
    return mean, lost, new_count, 1.0


@njit(cache=True, nogil=True)
def fold_average(values, bits, group_of, totals, compensations, counts, are_means):
    """Like `fold_sum`, but totals that would be infinite become running means, which are marked in `are_means`."""
    for series in range(len(group_of)):
        group = group_of[series]
        value, bit = values[series], bits[series]
        total, compensation, count, is_mean = totals[group], compensations[group], counts[group], are_means[group]
        unusual = 0
        for step in range(len(value)):
            unusual |= int(abs(total[step] + value[step]) == np.inf) | int(is_mean[step] != 0.0)
        if unusual:
            for step in range(len(value)):
                if bit[step] != NONE:
                    total[step], compensation[step], count[step], is_mean[step] = _average(
                        value[step], total[step], compensation[step], count[step], is_mean[step]
                    )
            continue
        for step in range(len(value)):
            new, lost = _added(value[step], total[step], compensation[step])
            there = bit[step] != NONE
            total[step] = new if there else total[step]
            compensation[step] = lost if there else compensation[step]
            count[step] += 1.0 if there else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def merge_average(
    other_totals, other_compensations, other_counts, other_are_means, group_of, totals, compensations, counts, are_means
):
    for row in range(len(group_of)):
        group = group_of[row]
        for step in range(totals.shape[1]):
            count, more = counts[group, step], other_counts[row, step]
            if more == 0.0:
                continue
            one, one_lost = totals[group, step], compensations[group, step]
            other, other_lost = other_totals[row, step], other_compensations[row, step]
            is_mean, is_other_mean = are_means[group, step], other_are_means[row, step]
            both = count + more
            counts[group, step] = both
            if count == 0.0:
                totals[group, step], compensations[group, step], are_means[group, step] = (
                    other,
                    other_lost,
                    is_other_mean,
                )
                continue
            if is_mean == 0.0 and is_other_mean == 0.0:
                total, lost = _added(other, one, one_lost)
                if abs(total) != np.inf:
                    totals[group, step], compensations[group, step] = total, lost + other_lost
                    continue
            if is_mean == 0.0:
                one, one_lost = one / count, one_lost / count
            if is_other_mean == 0.0:
                other, other_lost = other / more, other_lost / more
            mean, lost = _added(other * (more / both), one * (count / both), one_lost * (count / both))
            totals[group, step], are_means[group, step] = mean, 1.0
            compensations[group, step] = 0.0 if abs(mean) == np.inf else lost + other_lost * (more / both)


@njit(cache=True, nogil=True)
def fold_min(values, bits, group_of, minima):
    """NaN is above all numbers. "No sample" is a NaN, so any value replaces it."""
    for series in range(len(group_of)):
        value, bit, current = values[series], bits[series], minima[group_of[series]]
        for step in range(len(value)):
            takes = (bit[step] != NONE) & ((current[step] > value[step]) | (current[step] != current[step]))
            current[step] = value[step] if takes else current[step]


@njit(cache=True, nogil=True)
def fold_max(values, bits, group_of, maxima):
    """NaN is below all numbers."""
    for series in range(len(group_of)):
        value, bit, current = values[series], bits[series], maxima[group_of[series]]
        for step in range(len(value)):
            takes = (bit[step] != NONE) & ((current[step] < value[step]) | (current[step] != current[step]))
            current[step] = value[step] if takes else current[step]


@njit(cache=True, nogil=True)
def fold_count(bits, group_of, counts):
    for series in range(len(group_of)):
        bit, count = bits[series], counts[group_of[series]]
        for step in range(len(bit)):
            count[step] += 1.0 if bit[step] != NONE else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def fold_variance(values, bits, group_of, counts, means, squares, minima, maxima):
    """Welford's algorithm: the count, the mean, the sum of squared distances from it (NaN after NaN or Inf), and the
    extremes. For finite values in any order, the mean is finite, and the sum is finite or Inf.
    """
    for series in range(len(group_of)):
        group = group_of[series]
        value, bit = values[series], bits[series]
        count, mean, square = counts[group], means[group], squares[group]
        low, high = minima[group], maxima[group]
        for step in range(len(value)):
            there = bit[step] != NONE
            new_count = count[step] + 1.0
            distance = value[step] - mean[step]
            far = abs(distance) == np.inf
            new_mean = mean[step] + (value[step] / new_count - mean[step] / new_count if far else distance / new_count)
            new_square = square[step] + distance * (value[step] - new_mean)
            count[step] = new_count if there else count[step]
            mean[step] = new_mean if there else mean[step]
            square[step] = new_square if there else square[step]
            low[step] = value[step] if there & (value[step] < low[step]) else low[step]
            high[step] = value[step] if there & (value[step] > high[step]) else high[step]


@njit(cache=True, nogil=True, error_model="numpy")
def merge_variance(
    other_counts,
    other_means,
    other_squares,
    other_minima,
    other_maxima,
    group_of,
    counts,
    means,
    squares,
    minima,
    maxima,
):
    for row in range(len(group_of)):
        group = group_of[row]
        for step in range(counts.shape[1]):
            count, more = counts[group, step], other_counts[row, step]
            if more == 0.0:
                continue
            if count == 0.0:
                means[group, step], squares[group, step] = other_means[row, step], other_squares[row, step]
            else:
                both = count + more
                distance = other_means[row, step] - means[group, step]
                share = more / both
                if abs(distance) == np.inf:
                    means[group, step] += other_means[row, step] * share - means[group, step] * share
                else:
                    means[group, step] += distance * share
                squares[group, step] += other_squares[row, step] + distance * (distance * (count * share))
            counts[group, step] = count + more
            minima[group, step] = min(minima[group, step], other_minima[row, step])
            maxima[group, step] = max(maxima[group, step], other_maxima[row, step])
