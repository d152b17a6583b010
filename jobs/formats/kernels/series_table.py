"""Hash tables from the text that identifies a series to its number.

Two hash tables with open addressing, with three words per slot: hash low, hash high, number. The first one maps the
hash of a record's bytes to a group: a record with the same bytes as an earlier one needs nothing else. The second one
maps the hash of canonical labels to a series, so that different spellings of a series have the same number. `members`
contains the number of the series for each group and each value of a record, or the reason why there is none. Labels are
only parsed and canonicalized for the first record of a group.
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
from strandline.jobs.kernels.label_sets import labels_room, put_labels
from strandline.kernels.machine import load_u64
from strandline.kernels.xxh3 import hash_128
from strandline.wire.kernels.labels import METRIC_NAME, NO_LABELS

UNKNOWN = -1  # In `members`: not parsed yet.
# A member below `UNKNOWN` is a reason why there is no series; at most `FULL`, it is what is full.
FULL = -1000


@njit(cache=True)
def bad_member(reason):
    """The member for an invalid series."""
    return -10 - reason


@njit(cache=True)
def reason_of(member):
    """The reason of a bad member."""
    return -10 - member


@njit(cache=True)
def full_member(need):
    """The member for a series that did not fit."""
    return FULL - need


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
    """Insert a hash that the table does not contain. The caller makes sure that a slot is free."""
    mask = np.int64(len(slots) // WORDS - 1)
    slot = np.int64(low) & mask
    while slots[slot * WORDS + 2] != EMPTY:
        slot = (slot + 1) & mask
    slots[slot * WORDS] = low
    slots[slot * WORDS + 1] = high
    slots[slot * WORDS + 2] = np.uint64(number)


@njit(cache=True)
def add_group(groups, members, values, cursor, low, high):
    """Add a group with `values` unknown members. Returns its number, or at most `FULL`."""
    number = cursor[GROUPS]
    if 2 * (number + 1) * WORDS > len(groups) or (number + 1) * values > len(members):
        return full_member(MORE_GROUPS)
    _insert(groups, low, high, number)
    for index in range(number * values, (number + 1) * values):
        members[index] = UNKNOWN
    cursor[GROUPS] = number + 1
    return number


@njit(cache=True)
def has_metric(spans, count):
    """Whether one of the labels is `__name__`."""
    found = False
    for i in range(count):
        found |= spans[i, 1] == 8 and load_u64(spans[i, 0]) == METRIC_NAME
    return found


@njit(cache=True)
def series_of(spans, count, series, known, cursor):
    """The number of the series with these labels, which is added if it is new; or a bad member, or at most `FULL`.
    `series` are the columns of `SeriesColumns` to fill, and `known` is the table of canonical hashes.
    """
    if count == 0:
        return bad_member(NO_LABELS)
    starts, labels, key_low, key_high = series
    number, start = cursor[SERIES], cursor[LABEL_BYTES]
    if 2 * (number + 1) * WORDS > len(known) or number == len(key_low):
        return full_member(MORE_SERIES)
    if start + labels_room(spans, count) > len(labels):
        return full_member(MORE_LABELS)
    at = put_labels(labels, start, spans, count)
    low, high = hash_128(labels, start, at - start)
    found = find_group(known, low, high)
    if found != UNKNOWN:
        return found
    _insert(known, low, high, number)
    key_low[number], key_high[number], starts[number + 1] = low, high, at
    cursor[SERIES], cursor[LABEL_BYTES] = number + 1, at
    return number
