"""Aggregations over series: rows of values folded into rows of their groups, step by step.

Values come twice, as doubles and as their bits: "no sample" is told by its bits. Rows are walked one after the other,
and within a row there is no branch, so that compilers make vector instructions of it. Sums are compensated as
Prometheus does it (Kahan and Neumaier), and an infinite sum drops the compensation.
"""

import numpy as np
from numba import njit

from strandline.promql.values import NAN_BITS, NO_SAMPLE, NO_SAMPLE_BITS

NONE, ANY_NAN = np.int64(NO_SAMPLE_BITS), np.int64(NAN_BITS)
NO_VALUE = np.float64(NO_SAMPLE)
U64 = np.uint64


@njit(cache=True, nogil=True, inline="always")
def _added(value, total, compensation):
    """A sum and its compensation with one more value."""
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
    """One more value for an average: a total, or from the first one on that would be infinite, a running mean."""
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
    """As `fold_sum`, with care for totals that would be infinite: those become running means, as `are_means` says."""
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
def fold_least(values, bits, group_of, least):
    """NaN is above all numbers. What has no sample yet is a NaN, too, and so gives way to any value."""
    for series in range(len(group_of)):
        value, bit, current = values[series], bits[series], least[group_of[series]]
        for step in range(len(value)):
            takes = (bit[step] != NONE) & ((current[step] > value[step]) | (current[step] != current[step]))
            current[step] = value[step] if takes else current[step]


@njit(cache=True, nogil=True)
def fold_greatest(values, bits, group_of, greatest):
    """NaN is below all numbers."""
    for series in range(len(group_of)):
        value, bit, current = values[series], bits[series], greatest[group_of[series]]
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
def fold_variance(values, bits, group_of, counts, means, squares, least, greatest):
    """Welford's: the count, the mean, and the sum of squared distances from it, which is NaN after NaN or Inf; and the
    extremes. Of finite values the mean is finite, and the sum at most Inf, whatever their order.
    """
    for series in range(len(group_of)):
        group = group_of[series]
        value, bit = values[series], bits[series]
        count, mean, square = counts[group], means[group], squares[group]
        low, high = least[group], greatest[group]
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
    other_least,
    other_greatest,
    group_of,
    counts,
    means,
    squares,
    least,
    greatest,
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
            least[group, step] = min(least[group, step], other_least[row, step])
            greatest[group, step] = max(greatest[group, step], other_greatest[row, step])


@njit(cache=True, nogil=True, inline="always")
def _is_worse(value, other, sign):
    """Whether a value has to go before another. Asked of two NaNs, either has to, as in Prometheus."""
    return np.isnan(value) or sign * value < sign * other


@njit(cache=True, nogil=True)
def _sift_up(heap, rows, at, sign):
    while at:
        parent = (at - 1) >> 1
        if not _is_worse(heap[at], heap[parent], sign):
            break
        heap[at], heap[parent] = heap[parent], heap[at]
        rows[at], rows[parent] = rows[parent], rows[at]
        at = parent


@njit(cache=True, nogil=True)
def _sift_down(heap, rows, size, sign):
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _is_worse(heap[child + 1], heap[child], sign):
            child += 1
        if not _is_worse(heap[child], heap[at], sign):
            break
        heap[at], heap[child] = heap[child], heap[at]
        rows[at], rows[child] = rows[child], rows[at]
        at = child


@njit(cache=True, nogil=True)
def rank(values, bits, by_group, first_of_group, limits, sign, out, is_chosen, order):
    """Put the `limits[step]` best of each group and step into `out`, and mark the rows that have one. Best is greatest,
    or with `sign` -1 least; NaN is worst. Of equal values those stay that Prometheus keeps for rows in this order.

    `order` gets the rows of the first step, group by group, in no order within a group. Gives their number, and whether
    at any step a value was left out that is equal to one that stayed.
    """
    steps = values.shape[1]
    ordered = 0
    has_ties = False
    for group in range(len(first_of_group) - 1):
        first, behind = first_of_group[group], first_of_group[group + 1]
        most = 0
        for step in range(steps):
            most = max(most, min(limits[step], behind - first))
        if most < 1:
            continue
        heaps, rows = np.empty((steps, most), dtype=np.float64), np.empty((steps, most), dtype=np.int64)
        sizes, best_lost = np.zeros(steps, dtype=np.int64), np.full(steps, NO_VALUE)
        has_lost = np.zeros(steps, dtype=np.bool_)
        for place in range(first, behind):
            row = by_group[place]
            value, bit = values[row], bits[row]
            for step in range(steps):
                if bit[step] == NONE:
                    continue
                size, limit = sizes[step], limits[step]
                if size < limit:
                    heaps[step, size], rows[step, size] = value[step], row
                    sizes[step] += 1
                    _sift_up(heaps[step], rows[step], size, sign)
                elif limit > 0:
                    new, worst = value[step], heaps[step, 0]
                    if sign * worst < sign * new or (np.isnan(worst) and not np.isnan(new)):
                        best_lost[step], has_lost[step] = worst, True
                        heaps[step, 0], rows[step, 0] = new, row
                        _sift_down(heaps[step], rows[step], size, sign)
                    elif new == worst or np.isnan(worst):
                        best_lost[step], has_lost[step] = worst, True
        for step in range(steps):
            if has_lost[step]:
                worst, lost = heaps[step, 0], best_lost[step]
                has_ties |= worst == lost or (np.isnan(worst) and np.isnan(lost))
            for place in range(sizes[step]):
                row = rows[step, place]
                out[row, step] = heaps[step, place]
                is_chosen[row] = True
        for place in range(sizes[0]):
            order[ordered] = rows[0, place]
            ordered += 1
    return ordered, has_ties


@njit(cache=True, nogil=True)
def _select(values, first, behind, wanted, state):
    """Move the values so that the one at `wanted` is where a sort would put it, with none above it before and none
    below it behind. Pivots are drawn at random, so that no order of values is slow. Gives the state of the draw.
    """
    while behind - first > 1:
        state ^= state << U64(13)
        state ^= state >> U64(7)
        state ^= state << U64(17)
        pivot = values[first + np.int64(state % U64(behind - first))]
        low, high = first, behind - 1
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
            behind = high + 1
        elif wanted >= low:
            first = low
        else:
            break
    return state


@njit(cache=True, nogil=True)
def _quantile(values, count, nans, quantile, state):
    """The quantile of values of which the first `nans` are NaN, which is below all numbers."""
    if np.isnan(quantile):
        return np.nan, state
    if quantile < 0.0:
        return -np.inf, state
    if quantile > 1.0:
        return np.inf, state
    place = quantile * (count - 1.0)
    lower = max(0.0, np.floor(place))
    upper = min(count - 1.0, lower + 1.0)
    weight = place - np.floor(place)
    low, high = np.int64(lower), np.int64(upper)
    if low >= nans:
        state = _select(values, nans, count, low, state)
    least = values[low]
    if high != low:
        start = max(high, nans)
        least_behind = values[start]
        for i in range(start + 1, count):
            least_behind = min(least_behind, values[i])
        above = np.nan if high < nans else least_behind
    else:
        above = least
    return least * (1.0 - weight) + above * weight, state


@njit(cache=True, nogil=True)
def quantiles(values, bits, by_group, first_of_group, wanted, out):
    """The quantile `wanted[step]` of each group and step."""
    steps = values.shape[1]
    state = U64(0x9E3779B97F4A7C15)
    for group in range(len(first_of_group) - 1):
        first, behind = first_of_group[group], first_of_group[group + 1]
        columns = np.empty((steps, behind - first), dtype=np.float64)
        sizes, nans = np.zeros(steps, dtype=np.int64), np.zeros(steps, dtype=np.int64)
        for place in range(first, behind):
            row = by_group[place]
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


@njit(cache=True, nogil=True)
def _pair(group, word, slots, pair_groups, pair_bits, pairs):
    """The pair of a group and a value's bits, which is put behind the `pairs` that are there if it is new."""
    mask = np.int64(len(slots) - 1)
    mixed = (U64(word) ^ (U64(group) * U64(0x9E3779B97F4A7C15))) * U64(0xC2B2AE3D27D4EB4F)
    slot = np.int64(mixed ^ (mixed >> U64(32))) & mask
    while True:
        pair = slots[slot] - 1
        if pair < 0:
            slots[slot] = pairs + 1
            pair_groups[pairs], pair_bits[pairs] = group, word
            return pairs
        if pair_groups[pair] == group and pair_bits[pair] == word:
            return pair
        slot = (slot + 1) & mask


@njit(cache=True, nogil=True)
def count_values(values, bits, group_of, first, slots, pair_groups, pair_bits, counts, pairs):
    """Count how often a group has a value at each step. Values are told apart by their bits, and all NaNs are alike.
    Stops where a row might need more pairs than there is room for, and gives that row and the number of pairs.
    """
    steps = bits.shape[1]
    row = first
    while row < len(group_of) and pairs + steps <= len(pair_groups):
        for step in range(steps):
            if bits[row, step] == NONE:
                continue
            word = bits[row, step] if values[row, step] == values[row, step] else ANY_NAN
            pair = _pair(group_of[row], word, slots, pair_groups, pair_bits, pairs)
            pairs = max(pairs, pair + 1)
            counts[pair, step] += 1.0
        row += 1
    return row, pairs


@njit(cache=True, nogil=True)
def merge_counts(other_groups, other_bits, other_counts, slots, pair_groups, pair_bits, counts, pairs):
    """Add counts of pairs, for all of which there is room. Gives the number of pairs."""
    for row in range(len(other_groups)):
        pair = _pair(other_groups[row], other_bits[row], slots, pair_groups, pair_bits, pairs)
        pairs = max(pairs, pair + 1)
        for step in range(counts.shape[1]):
            counts[pair, step] += other_counts[row, step]
    return pairs


@njit(cache=True, nogil=True)
def fill_pairs(slots, pair_groups, pair_bits, pairs):
    """Put pairs into the places of a larger table, all of which are free."""
    for pair in range(pairs):
        _pair(pair_groups[pair], pair_bits[pair], slots, pair_groups, pair_bits, pair)
