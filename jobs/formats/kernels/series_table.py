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
from strandline.jobs.kernels.label_sets import labels_room, put_labels
from strandline.kernels.machine import load_u64
from strandline.kernels.xxh3 import hash_128
from strandline.wire.kernels.labels import METRIC_NAME, NO_LABELS

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
def has_metric(spans, count):
    """Whether one of the labels is `__name__`."""
    found = False
    for i in range(count):
        found |= spans[i, 1] == 8 and load_u64(spans[i, 0]) == METRIC_NAME
    return found


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
    if start + labels_room(spans, count) > len(labels):
        return lacking(MORE_LABELS)
    at = put_labels(labels, start, spans, count)
    low, high = hash_128(labels, start, at - start)
    found = find_group(known, low, high)
    if found != UNKNOWN:
        return found
    _insert(known, low, high, number)
    key_low[number], key_high[number], starts[number + 1] = low, high, at
    cursor[SERIES], cursor[LABEL_BYTES] = number + 1, at
    return number
