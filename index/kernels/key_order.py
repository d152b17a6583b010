"""Sorts part keys by their labels, as Prometheus compares label sets: label by label, first names and then values, as
bytes; if one key is a prefix of the other, the shorter one comes first.

A part key has the length of each text in front of it, so keys can't be compared as bytes. They are sorted text by text,
eight bytes at a time: the keys of a group have equal texts before, so the next text begins at the same position in each
of them.
"""

import numpy as np
from numba import njit

from strandline.kernels.machine import load_u8, load_u64

U64 = np.uint64
# Below this number, an insertion sort is faster.
INSERTION_SORT_MAX_KEYS = 12
# Up to this number, keys are compared label by label.
COMPARE_WHOLE_MAX_KEYS = 4


@njit(cache=True, nogil=True, inline="always")
def _length(at):
    return np.int64(load_u8(at)) | np.int64(load_u8(at + 1)) << 8


@njit(cache=True, nogil=True, inline="always")
def _big_endian(word):
    word = ((word >> U64(8)) & U64(0x00FF00FF00FF00FF)) | ((word & U64(0x00FF00FF00FF00FF)) << U64(8))
    word = ((word >> U64(16)) & U64(0x0000FFFF0000FFFF)) | ((word & U64(0x0000FFFF0000FFFF)) << U64(16))
    return (word >> U64(32)) | (word << U64(32))


@njit(cache=True, nogil=True, inline="always")
def _chunk(at, left):
    """Return the next eight bytes of a text with `left` bytes left, as a number with the same order."""
    if left >= 8:
        return _big_endian(load_u64(at))
    word = U64(0)
    for i in range(left):
        word |= U64(load_u8(at + i)) << U64(56 - 8 * i)
    return word


@njit(cache=True, nogil=True)
def compare_texts(one, one_length, other, other_length):
    """Return a negative number, 0 or a positive number if one text is below, equal to or above another. Texts are given
    by address.
    """
    shorter = min(one_length, other_length)
    at = 0
    while at + 8 <= shorter:
        left, right = load_u64(one + at), load_u64(other + at)
        if left != right:
            return -1 if _big_endian(left) < _big_endian(right) else 1
        at += 8
    while at < shorter:
        left_byte, right_byte = load_u8(one + at), load_u8(other + at)
        if left_byte != right_byte:
            return -1 if left_byte < right_byte else 1
        at += 1
    return one_length - other_length


@njit(cache=True, nogil=True)
def compare_keys(one, one_end, other, other_end):
    """Return a negative number, 0 or a positive number if one part key is below, equal to or above another. Keys are
    given by the addresses of their start and end.
    """
    while one < one_end and other < other_end:
        one_length, other_length = _length(one), _length(other)
        order = compare_texts(one + 2, one_length, other + 2, other_length)
        if order != 0:
            return order
        one += 2 + one_length
        other += 2 + other_length
    return (one_end - one) - (other_end - other)


@njit(cache=True, nogil=True, inline="always")
def _is_below(chunk, stop, other_chunk, other_stop):
    return chunk < other_chunk or (chunk == other_chunk and stop < other_stop)


@njit(cache=True, nogil=True)
def _swap(i, j, order, chunks, stops):
    order[i], order[j] = order[j], order[i]
    chunks[i], chunks[j] = chunks[j], chunks[i]
    stops[i], stops[j] = stops[j], stops[i]


@njit(cache=True, nogil=True)
def _sort_by_chunk(first, group_stop, order, chunks, stops, stack):
    """Sort indices by (chunk, stop): a three-way quicksort with an explicit stack."""
    depth = 0
    stack[0, 0], stack[0, 1] = first, group_stop
    depth = 1
    while depth:
        depth -= 1
        low, high = stack[depth, 0], stack[depth, 1]
        while high - low > INSERTION_SORT_MAX_KEYS:
            middle = (low + high) >> 1
            # Move the median of three into the middle.
            if _is_below(chunks[middle], stops[middle], chunks[low], stops[low]):
                _swap(middle, low, order, chunks, stops)
            if _is_below(chunks[high - 1], stops[high - 1], chunks[middle], stops[middle]):
                _swap(high - 1, middle, order, chunks, stops)
                if _is_below(chunks[middle], stops[middle], chunks[low], stops[low]):
                    _swap(middle, low, order, chunks, stops)
            chunk, stop = chunks[middle], stops[middle]
            below, at, above = low, low, high
            while at < above:
                if _is_below(chunks[at], stops[at], chunk, stop):
                    _swap(at, below, order, chunks, stops)
                    below += 1
                    at += 1
                elif _is_below(chunk, stop, chunks[at], stops[at]):
                    above -= 1
                    _swap(at, above, order, chunks, stops)
                else:
                    at += 1
            # The larger part goes onto the stack, so that its depth is logarithmic.
            if below - low > high - above:
                stack[depth, 0], stack[depth, 1] = low, below
                low = above
            else:
                stack[depth, 0], stack[depth, 1] = above, high
                high = below
            depth += 1
        for i in range(low + 1, high):
            position, chunk, stop = order[i], chunks[i], stops[i]
            j = i
            while j > low and _is_below(chunk, stop, chunks[j - 1], stops[j - 1]):
                order[j], chunks[j], stops[j] = order[j - 1], chunks[j - 1], stops[j - 1]
                j -= 1
            order[j], chunks[j], stops[j] = position, chunk, stop


@njit(cache=True, nogil=True)
def order_by_labels(data, starts, ends, order):
    """Fill `order` with the indices of the keys `data[starts[i]:ends[i]]`, sorted by their labels. The part keys must
    be valid; they are not checked.
    """
    base = np.int64(data.ctypes.data)
    n = len(starts)
    chunks, stops = np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.int64)
    stack = np.empty((64, 2), dtype=np.int64)
    for position in range(n):
        order[position] = position
    # Groups to sort: first, end, where their text begins in each key, and how much of it is equal. A group is only
    # pushed if it has at least two keys, so there are never more groups than half the number of keys.
    groups = np.empty((n // 2 + 2, 4), dtype=np.int64)
    depth = 0
    if n > 1:
        groups[0, 0], groups[0, 1], groups[0, 2], groups[0, 3] = 0, n, 0, 0
        depth = 1
    while depth:
        depth -= 1
        first, group_stop, text, done = groups[depth, 0], groups[depth, 1], groups[depth, 2], groups[depth, 3]
        if group_stop - first <= COMPARE_WHOLE_MAX_KEYS:
            # Compare few keys directly: long texts that they share are then read once per pair, not once per eight
            # bytes.
            for i in range(first + 1, group_stop):
                position, j = order[i], i
                start, end = base + starts[position] + text, base + ends[position]
                while j > first:
                    before = order[j - 1]
                    if compare_keys(base + starts[before] + text, base + ends[before], start, end) <= 0:
                        break
                    order[j] = before
                    j -= 1
                order[j] = position
            continue
        are_equal = True
        while are_equal:
            for i in range(first, group_stop):
                start = base + starts[order[i]]
                if start + text >= base + ends[order[i]]:
                    # No label is left: below any text, including the empty one.
                    chunks[i], stops[i] = U64(0), -1
                else:
                    length = _length(start + text)
                    chunks[i] = _chunk(start + text + 2 + done, length - done)
                    stops[i] = min(length, done + 9)
                are_equal &= chunks[i] == chunks[first] and stops[i] == stops[first]
            if are_equal:
                if stops[first] < 0:
                    break  # A duplicate key.
                if stops[first] <= done + 8:
                    text, done = text + 2 + stops[first], 0
                else:
                    done += 8
        if are_equal:
            continue
        _sort_by_chunk(first, group_stop, order, chunks, stops, stack)
        at = first
        while at < group_stop:
            end = at + 1
            while end < group_stop and chunks[end] == chunks[at] and stops[end] == stops[at]:
                end += 1
            if end - at > 1 and stops[at] >= 0:
                groups[depth, 0], groups[depth, 1] = at, end
                if stops[at] <= done + 8:
                    groups[depth, 2], groups[depth, 3] = text + 2 + stops[at], 0
                else:
                    groups[depth, 2], groups[depth, 3] = text, done + 8
                depth += 1
            at = end
