"""Encodes label sets, whose texts may be anywhere in memory, in canonical form (`strandline.wire.kernels.labels`).

The labels of a set are inserted one by one into `spans` (rows of name address, name length, value address, value
length), sorted by name, and then encoded. The verdicts are those of `Verdict`, in the same order of precedence.
"""

import numpy as np
from numba import njit

from strandline.kernels.xxh3 import hash_at
from strandline.wire.kernels.labels import (
    CANONICAL,
    DUPLICATE_NAME,
    EMPTY_NAME,
    MAX_TEXT,
    NAME_TOO_LONG,
    NO_LABELS,
    NOT_UTF8,
    TAG_LABEL,
    TAG_NAME,
    TAG_VALUE,
    TOO_MANY_LABELS,
    VALUE_TOO_LONG,
)
from strandline.wire.kernels.protobuf import compare_bytes, is_ascii, is_utf8, put_varint, varint_size
from strandline.wire.kernels.split import copy_bytes

# The bytes in addition to name and value: tags and lengths of the label, the name and the value.
LABEL_OVERHEAD = 12


@njit(cache=True)
def _is_text(at, length):
    return is_ascii(at, length) or is_utf8(at, length)


@njit(cache=True)
def add_label(spans, count, names_length, name, name_length, value, value_length, limits):
    """Insert a label: (verdict, number of labels, length of all names as stored by Lucene).

    A label without a value is skipped. `limits` is (labels, name length, value length).
    """
    if value_length == 0:
        return CANONICAL, count, names_length
    names_length += name_length + 2
    if name_length == 0:
        return EMPTY_NAME, count, names_length
    if count == limits[0]:
        return TOO_MANY_LABELS, count, names_length
    if name_length > limits[1] or names_length > MAX_TEXT:
        return NAME_TOO_LONG, count, names_length
    if value_length > limits[2]:
        return VALUE_TOO_LONG, count, names_length
    if not (_is_text(name, name_length) and _is_text(value, value_length)):
        return NOT_UTF8, count, names_length
    index = count
    while index > 0:
        order = compare_bytes(name, name_length, spans[index - 1, 0], spans[index - 1, 1])
        if order == 0:
            return DUPLICATE_NAME, count, names_length
        if order > 0:
            break
        index -= 1
    for moved in range(count, index, -1):
        for column in range(4):
            spans[moved, column] = spans[moved - 1, column]
    spans[index, 0], spans[index, 1] = name, name_length
    spans[index, 2], spans[index, 3] = value, value_length
    return CANONICAL, count + 1, names_length


@njit(cache=True)
def labels_room(spans, count):
    """An upper bound of the size of the encoded labels."""
    room = 0
    for label in range(count):
        room += spans[label, 1] + spans[label, 3] + LABEL_OVERHEAD
    return room


@njit(cache=True)
def put_labels(out, at, spans, count):
    """Encode labels to `out`, starting at `at`. Returns the position after them."""
    base = np.int64(out.ctypes.data)
    for label in range(count):
        name, name_length, value, value_length = spans[label, 0], spans[label, 1], spans[label, 2], spans[label, 3]
        content = 2 + varint_size(name_length) + name_length + varint_size(value_length) + value_length
        out[at] = TAG_LABEL
        at = put_varint(out, at + 1, content)
        out[at] = TAG_NAME
        at = put_varint(out, at + 1, name_length)
        copy_bytes(base + at, name, name_length)
        at += name_length
        out[at] = TAG_VALUE
        at = put_varint(out, at + 1, value_length)
        copy_bytes(base + at, value, value_length)
        at += value_length
    return at


@njit(cache=True)
def number_of(slots, key_low, key_high, count, low, high):
    """The number of a key among `count` keys, by a hash table with open addressing. A new key is added as number
    `count`.

    `slots` contains numbers, or -1 in free slots. Its length is a power of two above `count`.
    """
    mask = len(slots) - 1
    slot = np.int64(low) & mask
    while slots[slot] >= 0:
        known = slots[slot]
        if key_low[known] == low and key_high[known] == high:
            return np.int64(known)
        slot = (slot + 1) & mask
    slots[slot] = count
    key_low[count], key_high[count] = low, high
    return np.int64(count)


@njit(cache=True, nogil=True)
def build_label_sets(first_label, columns, limits, spans, slots, starts, out, key_low, key_high, series_of):
    """Encode label sets: (number of distinct series, bytes of `out` in use).

    The labels of set i are those from `first_label[i]` to `first_label[i + 1]` (exclusive); `columns` has the addresses
    and lengths of their names and values. `series_of[i]` becomes the number of its series, or its negated verdict.
    `out` must have room for all sets.
    """
    names, name_lengths, values, value_lengths = columns
    base = np.int64(out.ctypes.data)
    count, at = 0, 0
    starts[0] = 0
    for label_set in range(len(first_label) - 1):
        verdict, labels, names_length = CANONICAL, 0, 0
        for j in range(first_label[label_set], first_label[label_set + 1]):
            verdict, labels, names_length = add_label(
                spans, labels, names_length, names[j], name_lengths[j], values[j], value_lengths[j], limits
            )
            if verdict != CANONICAL:
                break
        if verdict == CANONICAL and labels == 0:
            verdict = NO_LABELS
        if verdict != CANONICAL:
            series_of[label_set] = -verdict
            continue
        end = put_labels(out, at, spans, labels)
        low, high = hash_at(base + at, end - at)
        number = number_of(slots, key_low, key_high, count, low, high)
        series_of[label_set] = number
        if number == count:
            count, at = count + 1, end
            starts[count] = at
    return count, at
