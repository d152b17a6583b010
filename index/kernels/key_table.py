"""A hash table with open addressing and linear probing, in one array of three words per slot: key hash low, key hash
high, row.

A slot whose third word is `EMPTY` is free. There are no tombstones: a removal moves the rest of its run up, so the
table does not get slower with age. The number of slots is a power of two, and at least one is always free.
"""

import numpy as np
from numba import njit

WORDS = 3
EMPTY = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
MISSING = np.uint32(0xFFFF_FFFF)  # No row, and no part id: both stay below it.


@njit(cache=True)
def _slot_of(slots, mask, low, high):
    """Return the slot of a key, or the free slot at the end of its run."""
    slot = np.int64(low & mask)
    while slots[slot * WORDS + 2] != EMPTY:
        if slots[slot * WORDS] == low and slots[slot * WORDS + 1] == high:
            break
        slot = (slot + 1) & np.int64(mask)
    return slot


@njit(cache=True, nogil=True)
def find(slots, low, high, out):
    """Fill `out` with the row of each key, `MISSING` if there is none; return the number of missing keys."""
    mask = np.uint64(len(slots) // WORDS - 1)
    missing = 0
    for position in range(len(low)):
        row = slots[_slot_of(slots, mask, low[position], high[position]) * WORDS + 2]
        if row == EMPTY:
            out[position] = MISSING
            missing += 1
        else:
            out[position] = np.uint32(row)
    return missing


@njit(cache=True, nogil=True)
def find_in_order(slots, low, high, known_low, known_high, known_end, absent, out):
    """The same as `find`, for keys that mostly come in the order of their rows, as in scrapes.

    `known_low`, `known_high` and `known_end` are columns by row; a row whose end is `absent` has no key. If a key is
    that of the row after the previous one, its row is known without a lookup.
    """
    mask = np.uint64(len(slots) // WORDS - 1)
    missing = 0
    n_rows = len(known_low)
    guess = 0
    for position in range(len(low)):
        if (
            guess < n_rows
            and known_low[guess] == low[position]
            and known_high[guess] == high[position]
            and known_end[guess] != absent
        ):
            out[position] = np.uint32(guess)
            guess += 1
            continue
        row = slots[_slot_of(slots, mask, low[position], high[position]) * WORDS + 2]
        if row == EMPTY:
            out[position] = MISSING
            missing += 1
        else:
            out[position] = np.uint32(row)
            guess = np.int64(row) + 1
    return missing


@njit(cache=True, nogil=True)
def assign(slots, low, high, positions, next_row, room, out, first_positions):
    """Give the keys at `positions` the rows from `next_row`, in that order; a repeated key keeps its first row.

    Fills `out` at those positions; `first_positions` gets the position of each new key. After `room` new keys, the
    others stay `MISSING`. Returns the number of new keys.
    """
    mask = np.uint64(len(slots) // WORDS - 1)
    new = 0
    for position in positions:
        slot = _slot_of(slots, mask, low[position], high[position])
        if slots[slot * WORDS + 2] == EMPTY:
            if new == room:
                continue
            slots[slot * WORDS] = low[position]
            slots[slot * WORDS + 1] = high[position]
            slots[slot * WORDS + 2] = np.uint64(next_row + new)
            first_positions[new] = position
            new += 1
        out[position] = np.uint32(slots[slot * WORDS + 2])
    return new


@njit(cache=True, nogil=True)
def insert(slots, low, high, rows, new):
    """Insert keys with their rows. `new` gets whether each was new; returns the number of new ones. An existing key
    keeps its row.
    """
    mask = np.uint64(len(slots) // WORDS - 1)
    n_new = 0
    for position in range(len(low)):
        slot = _slot_of(slots, mask, low[position], high[position])
        new[position] = slots[slot * WORDS + 2] == EMPTY
        if new[position]:
            slots[slot * WORDS] = low[position]
            slots[slot * WORDS + 1] = high[position]
            slots[slot * WORDS + 2] = np.uint64(rows[position])
            n_new += 1
    return n_new


@njit(cache=True, nogil=True)
def renumber(slots, rows):
    """Replace each row by `rows[row]`."""
    for slot in range(len(slots) // WORDS):
        if slots[slot * WORDS + 2] != EMPTY:
            slots[slot * WORDS + 2] = np.uint64(rows[slots[slot * WORDS + 2]])


@njit(cache=True, nogil=True)
def rehash(old, new):
    """Copy every key of one array of slots into another, empty one. Keys are unique, so they are not compared."""
    mask = np.int64(len(new) // WORDS - 1)
    for start in range(0, len(old), WORDS):
        if old[start + 2] != EMPTY:
            position = np.int64(old[start]) & mask
            while new[position * WORDS + 2] != EMPTY:
                position = (position + 1) & mask
            for word in range(WORDS):
                new[position * WORDS + word] = old[start + word]


@njit(cache=True, nogil=True)
def remove(slots, low, high):
    """Remove keys; return how many existed."""
    mask = np.uint64(len(slots) // WORDS - 1)
    removed = 0
    for position in range(len(low)):
        hole = _slot_of(slots, mask, low[position], high[position])
        if slots[hole * WORDS + 2] == EMPTY:
            continue
        removed += 1
        slot = hole
        while True:
            slot = (slot + 1) & np.int64(mask)
            if slots[slot * WORDS + 2] == EMPTY:
                break
            # A key may move into the hole only if its home slot is at or before the hole: otherwise it would not be
            # found.
            home = np.int64(slots[slot * WORDS] & mask)
            if (slot - home) & np.int64(mask) >= (slot - hole) & np.int64(mask):
                for word in range(WORDS):
                    slots[hole * WORDS + word] = slots[slot * WORDS + word]
                hole = slot
        slots[hole * WORDS + 2] = EMPTY
    return removed


@njit(cache=True, nogil=True)
def dump(slots, low, high, rows):
    """Fill the arrays with every key and its row, in no particular order; return their number."""
    found = 0
    for slot in range(len(slots) // WORDS):
        if slots[slot * WORDS + 2] != EMPTY:
            low[found] = slots[slot * WORDS]
            high[found] = slots[slot * WORDS + 1]
            rows[found] = np.uint32(slots[slot * WORDS + 2])
            found += 1
    return found
