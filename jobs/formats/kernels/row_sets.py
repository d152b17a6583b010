"""Numbers the distinct label sets of a table's rows, in the order of their first occurrence."""

import numpy as np
from numba import njit

from strandline.jobs.kernels.label_sets import number_of
from strandline.kernels.machine import load_u8, load_u64
from strandline.kernels.xxh3 import hash_at

WORD = 8


@njit(cache=True)
def _equal_bytes(one, two, length):
    end = one + length
    while one + WORD <= end:
        if load_u64(one) != load_u64(two):
            return False
        one, two = one + WORD, two + WORD
    while one < end:
        if load_u8(one) != load_u8(two):
            return False
        one, two = one + 1, two + 1
    return True


@njit(cache=True, nogil=True)
def hash_maps(begins, ends, entries, low, high):
    """The hash of each row's map entries, in their order: those from `begins` to `ends` (exclusive).

    `entries` has a row for each entry, with the codes of its name and value. Equal texts have equal codes.
    """
    memory, width = np.int64(entries.ctypes.data), entries.shape[1] * entries.itemsize
    for row in range(len(begins)):
        at, length = memory + begins[row] * width, (ends[row] - begins[row]) * width
        # Tables are often sorted by series: most rows then equal the previous one.
        if (
            row > 0
            and length == (ends[row - 1] - begins[row - 1]) * width
            and _equal_bytes(at, memory + begins[row - 1] * width, length)
        ):
            low[row], high[row] = low[row - 1], high[row - 1]
        else:
            low[row], high[row] = hash_at(at, length)


@njit(cache=True, nogil=True)
def number_rows(rows, slots, key_low, key_high, set_of, first_rows):
    """Number the distinct rows of a matrix of words. Returns how many there are.

    Sets `set_of` to the number of each row, and `first_rows` to the first row of each number.
    """
    memory, width = np.int64(rows.ctypes.data), rows.shape[1] * rows.itemsize
    count = 0
    for row in range(len(rows)):
        at = memory + row * width
        if row > 0 and _equal_bytes(at, at - width, width):
            set_of[row] = set_of[row - 1]
            continue
        low, high = hash_at(at, width)
        number = number_of(slots, key_low, key_high, count, low, high)
        set_of[row] = number
        if number == count:
            first_rows[count] = row
            count += 1
    return count
