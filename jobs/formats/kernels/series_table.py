"""From the text that identifies a series to its number.

Two tables of open addressing, each with three words a slot: hash low, hash high, number. The first leads from the hash
of a record's own bytes to a group: a record that is spelled as one before needs nothing else. The second leads from the
hash of canonical labels to a series, so that two spellings of one series get one number. `members` holds, for each
group and each value of a record, the series' number, or why it can't be one. Labels are read and put into canonical
form only for a group's first record.
"""

import numpy as np
from numba import njit

from strandline.index.kernels.key_table import EMPTY, WORDS
from strandline.jobs.formats.kernels.block import (
    GROUPS,
    LABEL_BYTES,
    MORE_GROUPS,
    MORE_LABELS,
    MORE_SERIES,
    SERIES,
)
from strandline.kernels.machine import load_u8, load_u64
from strandline.kernels.xxh3 import hash_128
from strandline.wire.kernels.labels import (
    CANONICAL,
    DUPLICATE_NAME,
    EMPTY_NAME,
    MAX_TEXT,
    METRIC_NAME,
    NAME_TOO_LONG,
    NO_LABELS,
    NOT_UTF8,
    TAG_LABEL,
    TAG_NAME,
    TAG_VALUE,
    TOO_MANY_LABELS,
    VALUE_TOO_LONG,
)
from strandline.wire.kernels.protobuf import compare_bytes, is_utf8, put_varint, varint_size

UNKNOWN = -1  # Of `members`: not looked at so far.
# A member below `UNKNOWN` is the reason why there is no series; from `ROOM` down it is what there is no room for.
ROOM = -1000


@njit(cache=True)
def bad_member(reason):
    """What stands in `members` for a series that can't be one."""
    return -10 - reason


@njit(cache=True)
def reason_of(member):
    """The reason that a negative member stands for."""
    return -10 - member


@njit(cache=True)
def lacking(need):
    """What stands for a series that there was no room for."""
    return ROOM - need


@njit(cache=True)
def find_group(groups, low, high):
    """The number of the group with this hash, or `UNKNOWN`."""
    mask = np.int64(len(groups) // WORDS - 1)
    slot = np.int64(low) & mask
    while groups[slot * WORDS + 2] != EMPTY:
        if groups[slot * WORDS] == low and groups[slot * WORDS + 1] == high:
            return np.int64(groups[slot * WORDS + 2])
        slot = (slot + 1) & mask
    return UNKNOWN


@njit(cache=True)
def _insert(slots, low, high, number):
    """Put a hash in that is not there. The caller has seen that a slot is free."""
    mask = np.int64(len(slots) // WORDS - 1)
    slot = np.int64(low) & mask
    while slots[slot * WORDS + 2] != EMPTY:
        slot = (slot + 1) & mask
    slots[slot * WORDS] = low
    slots[slot * WORDS + 1] = high
    slots[slot * WORDS + 2] = np.uint64(number)


@njit(cache=True)
def add_group(groups, members, values, cursor, low, high):
    """A new group, none of whose `values` members is known; its number, or `ROOM` and below."""
    number = cursor[GROUPS]
    if 2 * (number + 1) * WORDS > len(groups) or (number + 1) * values > len(members):
        return lacking(MORE_GROUPS)
    _insert(groups, low, high, number)
    for place in range(number * values, (number + 1) * values):
        members[place] = UNKNOWN
    cursor[GROUPS] = number + 1
    return number


@njit(cache=True)
def add_label(spans, count, names_length, name, name_length, value, value_length, limits):
    """Put a label into its place among those that are sorted by name: (verdict, number of labels, length of names).

    A row of `spans` is name start, name length, value start, value length. The rules are those of
    `strandline.wire.kernels.labels.gather`.
    """
    if value_length == 0:
        return CANONICAL, count, names_length
    max_labels, max_name, max_value = limits
    names_length += name_length + 2
    if name_length == 0:
        return EMPTY_NAME, count, names_length
    if count == max_labels:
        return TOO_MANY_LABELS, count, names_length
    if name_length > max_name or names_length > MAX_TEXT:
        return NAME_TOO_LONG, count, names_length
    if value_length > max_value:
        return VALUE_TOO_LONG, count, names_length
    if not (is_utf8(name, name_length) and is_utf8(value, value_length)):
        return NOT_UTF8, count, names_length
    place = count
    while place > 0:
        order = compare_bytes(name, name_length, spans[place - 1, 0], spans[place - 1, 1])
        if order == 0:
            return DUPLICATE_NAME, count, names_length
        if order > 0:
            break
        for word in range(4):
            spans[place, word] = spans[place - 1, word]
        place -= 1
    spans[place, 0], spans[place, 1], spans[place, 2], spans[place, 3] = name, name_length, value, value_length
    return CANONICAL, count + 1, names_length


@njit(cache=True)
def has_metric(spans, count):
    """Whether one of the labels is `__name__`."""
    found = False
    for i in range(count):
        found |= spans[i, 1] == 8 and load_u64(spans[i, 0]) == METRIC_NAME
    return found


@njit(cache=True)
def _put_text(out, at, tag, start, length):
    out[at] = tag
    at = put_varint(out, at + 1, length)
    for i in range(length):
        out[at + i] = load_u8(start + i)
    return at + length


@njit(cache=True)
def series_of(spans, count, series, known, cursor):
    """The number of the series with these labels, which is a new one if there is none; or a bad member, or `ROOM` and
    below. `series` are the columns of `SeriesColumns` with room, `known` is the table of canonical hashes.
    """
    if count == 0:
        return bad_member(NO_LABELS)
    starts, labels, key_low, key_high = series
    number, start = cursor[SERIES], cursor[LABEL_BYTES]
    if 2 * (number + 1) * WORDS > len(known) or number == len(key_low):
        return lacking(MORE_SERIES)
    size = 0
    for i in range(count):
        size += spans[i, 1] + spans[i, 3] + 12  # Three tags and three lengths of at most three bytes.
    if start + size > len(labels):
        return lacking(MORE_LABELS)
    at = start
    for i in range(count):
        name_length, value_length = spans[i, 1], spans[i, 3]
        labels[at] = TAG_LABEL
        length = 2 + varint_size(name_length) + name_length + varint_size(value_length) + value_length
        at = put_varint(labels, at + 1, length)
        at = _put_text(labels, at, TAG_NAME, spans[i, 0], name_length)
        at = _put_text(labels, at, TAG_VALUE, spans[i, 2], value_length)
    low, high = hash_128(labels, start, at - start)
    found = find_group(known, low, high)
    if found != UNKNOWN:
        return found
    _insert(known, low, high, number)
    key_low[number], key_high[number], starts[number + 1] = low, high, at
    cursor[SERIES], cursor[LABEL_BYTES] = number + 1, at
    return number
