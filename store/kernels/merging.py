"""Merges any number of runs into one, copying each sample once.

A *piece* is the part of a series that one run has. The pieces are sorted by series, using only their keys; then each
piece is copied to its position. Samples are only compared for series whose pieces overlap in time.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _is_above(metric, key_high, key_low, one, other):
    """Whether the series of one piece is above that of another."""
    if metric[one] != metric[other]:
        return metric[one] > metric[other]
    if key_high[one] != key_high[other]:
        return key_high[one] > key_high[other]
    return key_low[one] > key_low[other]


@njit(cache=True, nogil=True)
def _is_same(metric, key_high, key_low, one, other):
    return metric[one] == metric[other] and key_high[one] == key_high[other] and key_low[one] == key_low[other]


@njit(cache=True, nogil=True)
def _merge_order(metric, key_high, key_low, source, start, middle, end, target):
    """Merge two neighbouring parts of `source` into the same range of `target`; of equal pieces, the first part's is
    first.
    """
    if start == middle or middle == end or not _is_above(metric, key_high, key_low, source[middle - 1], source[middle]):
        # The usual case: the segments of a group follow each other.
        target[start:end] = source[start:end]
        return
    i, j = start, middle
    for at in range(start, end):
        if j == end or (i < middle and not _is_above(metric, key_high, key_low, source[i], source[j])):
            target[at] = source[i]
            i += 1
        else:
            target[at] = source[j]
            j += 1


@njit(cache=True, nogil=True)
def order_pieces(metric, key_high, key_low, run_first):
    """Return the pieces in the order of their series; those of one series in the order of their runs. Run r has the
    pieces `[run_first[r], run_first[r + 1])`, in order.
    """
    source, target = np.arange(len(metric)), np.empty(len(metric), dtype=np.int64)
    bounds, runs = run_first.copy(), len(run_first) - 1
    while runs > 1:
        merged = 0
        for run in range(0, runs, 2):
            start, middle, end = bounds[run], bounds[run + 1], bounds[min(run + 2, runs)]
            _merge_order(metric, key_high, key_low, source, start, middle, end, target)
            bounds[merged] = start
            merged += 1
        bounds[merged], runs = bounds[runs], merged
        source, target = target, source
    return source


@njit(cache=True, nogil=True)
def locate_pieces(
    metric, key_high, key_low, order, counts, least, greatest, position, first_piece, first_sample, overlaps
):
    """Fill `position` with the position of each piece if the pieces of a series follow each other. Return the number of
    series.

    Series s has the pieces `order[first_piece[s]:first_piece[s + 1]]`, and its samples from `first_sample[s]`.
    `overlaps[s]` is set if their times would not be ascending.
    """
    series, at = -1, 0
    for number in range(len(order)):
        piece = order[number]
        before = order[number - 1] if number else piece
        if number == 0 or not _is_same(metric, key_high, key_low, before, piece):
            series += 1
            first_piece[series], first_sample[series], overlaps[series] = number, at, False
        elif least[piece] <= greatest[before]:
            overlaps[series] = True
        position[piece] = at
        at += counts[piece]
    first_piece[series + 1], first_sample[series + 1] = len(order), at
    return series + 1


@njit(cache=True, nogil=True)
def copy_pieces(first, time, value, position, to_time, to_value):
    """Copy the pieces of one run to their positions."""
    for piece in range(len(first) - 1):
        start, end, to = first[piece], first[piece + 1], position[piece]
        for at in range(end - start):
            to_time[to + at] = time[start + at]
            to_value[to + at] = value[start + at]


@njit(cache=True, nogil=True)
def _merge_two(time, value, i, i_end, j_end, to_time, to_value, to):
    """Merge two neighbouring pieces, the second of which begins at `i_end`; if both have a time, the second's sample is
    kept. Return the end of the result.
    """
    j = i_end
    while i < i_end or j < j_end:
        if j == j_end or (i < i_end and time[i] < time[j]):
            to_time[to], to_value[to] = time[i], value[i]
            i += 1
        else:
            i += i < i_end and time[i] == time[j]
            to_time[to], to_value[to] = time[j], value[j]
            j += 1
        to += 1
    return to


@njit(cache=True, nogil=True)
def _merge_pieces(time, value, bounds, pieces, spare_time, spare_value):
    """Merge pieces that follow each other, in place. Return the end of the result."""
    start = bounds[0]
    while pieces > 1:
        merged, to = 0, 0
        for piece in range(0, pieces, 2):
            i, i_end, j_end = bounds[piece], bounds[piece + 1], bounds[min(piece + 2, pieces)]
            bounds[merged] = start + to
            merged += 1
            to = _merge_two(time, value, i, i_end, j_end, spare_time, spare_value, to)
        bounds[merged], pieces = start + to, merged
        for at in range(to):
            time[start + at], value[start + at] = spare_time[at], spare_value[at]
    return bounds[1]


@njit(cache=True, nogil=True)
def merge_overlapping(order, counts, first_piece, first_sample, overlaps, time, value):
    """Merge the pieces of the series that overlap, and close the gaps. Return the number of samples that remain."""
    longest = most = 0
    for series in range(len(first_piece) - 1):
        if overlaps[series]:
            longest = max(longest, first_sample[series + 1] - first_sample[series])
            most = max(most, first_piece[series + 1] - first_piece[series])
    spare_time, spare_value = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.float64)
    bounds = np.empty(most + 1, dtype=np.int64)
    to = 0
    for series in range(len(first_piece) - 1):
        start, end = first_sample[series], first_sample[series + 1]
        if overlaps[series]:
            pieces = first_piece[series + 1] - first_piece[series]
            bounds[0] = start
            for piece in range(pieces):
                bounds[piece + 1] = bounds[piece] + counts[order[first_piece[series] + piece]]
            end = _merge_pieces(time, value, bounds, pieces, spare_time, spare_value)
        if to < start:
            for at in range(end - start):
                time[to + at], value[to + at] = time[start + at], value[start + at]
        first_sample[series] = to
        to += end - start
    first_sample[len(first_piece) - 1] = to
    return to
