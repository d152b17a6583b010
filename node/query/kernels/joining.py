"""Joins two sorted lists into one, and merges the samples of joined series."""

import numpy as np
from numba import njit

from strandline.index.kernels.key_order import compare_keys, compare_texts


@njit(cache=True, nogil=True)
def positions_in(metric, key_high, key_low, in_metric, in_key_high, in_key_low, positions):
    """The position of each series in a list that has all of them. Both are ascending by (metric, key_high, key_low).

    From the first series on that the list does not have, the position is the length of the list.
    """
    at, end = 0, len(in_metric)
    for i in range(len(metric)):
        while at < end and (
            in_metric[at] != metric[i] or in_key_high[at] != key_high[i] or in_key_low[at] != key_low[i]
        ):
            at += 1
        positions[i] = at


@njit(cache=True, nogil=True)
def _joined(data, offsets, other_data, other_offsets, are_keys, one, other):
    base, other_base = np.int64(data.ctypes.data), np.int64(other_data.ctypes.data)
    i = j = found = 0
    n, m = len(offsets) - 1, len(other_offsets) - 1
    while i < n or j < m:
        if i == n:
            order = 1
        elif j == m:
            order = -1
        elif are_keys:
            order = compare_keys(
                base + offsets[i],
                base + offsets[i + 1],
                other_base + other_offsets[j],
                other_base + other_offsets[j + 1],
            )
        else:
            order = compare_texts(
                base + offsets[i],
                offsets[i + 1] - offsets[i],
                other_base + other_offsets[j],
                other_offsets[j + 1] - other_offsets[j],
            )
        one[found] = i if order <= 0 else -1
        other[found] = j if order >= 0 else -1
        i += order <= 0
        j += order >= 0
        found += 1
    return found


@njit(cache=True, nogil=True)
def join_keys(data, offsets, other_data, other_offsets, one, other):
    """Join two lists of distinct part keys, each in the order of labels. Writes the position of every key in either
    list, -1 where a list does not have it, and returns the number of distinct keys.
    """
    return _joined(data, offsets, other_data, other_offsets, True, one, other)


@njit(cache=True, nogil=True)
def join_texts(data, offsets, other_data, other_offsets, one, other):
    """Like `join_keys`, for texts in the order of their bytes."""
    return _joined(data, offsets, other_data, other_offsets, False, one, other)


@njit(cache=True, nogil=True)
def gather_joined(data, offsets, other_data, other_offsets, one, other, out, out_offsets):
    """Copy the joined texts or keys into `out`, one after the other. Returns the end."""
    at = 0
    out_offsets[0] = 0
    for row in range(len(one)):
        if one[row] >= 0:
            start, end = offsets[one[row]], offsets[one[row] + 1]
            out[at : at + end - start] = data[start:end]
        else:
            start, end = other_offsets[other[row]], other_offsets[other[row] + 1]
            out[at : at + end - start] = other_data[start:end]
        at += end - start
        out_offsets[row + 1] = at
    return at


@njit(cache=True, nogil=True)
def merge_samples(first, time, value, new_first, new_time, new_value, one, other, to_first, to_time, to_value):
    """Merge the samples of joined series into columns that have room for both. If both have a sample of the same time,
    the new one is taken. Values are given as their bits. Returns the number of samples.
    """
    at = 0
    for row in range(len(one)):
        to_first[row] = at
        i = i_end = j = j_end = np.int64(0)
        if one[row] >= 0:
            i, i_end = first[one[row]], first[one[row] + 1]
        if other[row] >= 0:
            j, j_end = new_first[other[row]], new_first[other[row] + 1]
        while i < i_end or j < j_end:
            if j == j_end or (i < i_end and time[i] < new_time[j]):
                to_time[at], to_value[at] = time[i], value[i]
                i += 1
            else:
                if i < i_end and time[i] == new_time[j]:
                    i += 1
                to_time[at], to_value[at] = new_time[j], new_value[j]
                j += 1
            at += 1
    to_first[len(one)] = at
    return at
