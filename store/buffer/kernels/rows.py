"""Rows of one sample each, as they arrive: appending them, and sorting them by counting."""

import numpy as np
from numba import njit

REFUSED = np.uint32(0xFFFF_FFFF)
# Values are searched in blocks of this size; most have no match.
BLOCK = 256


@njit(cache=True, nogil=True)
def one_sample_each(series, first_sample, defined):
    """Whether every row has exactly one sample and a series below `defined`, so that columns can be copied as a whole.

    It checks every row without an early exit, so that the loop is vectorised.
    """
    odd = 0
    for row in range(len(series)):
        odd |= (first_sample[row + 1] - first_sample[row] != 1) | (np.int64(series[row]) >= defined)
    return odd == 0


@njit(cache=True, nogil=True)
def append_rows(series, first_sample, time, bits, row, sample, defined, to_series, to_time, to_bits, used):
    """Copy the samples of rows from (`row`, `sample`) to position `used` and after, without those of refused rows.

    Returns the row and sample at which to continue once there is space, and the end of the copied samples; the row is
    `len(series)` when all are copied. At a row whose series is not below `defined`, it stops and returns the end -1.
    """
    room = len(to_series)
    while row < len(series):
        number = series[row]
        sample = max(sample, first_sample[row])
        if number == REFUSED:
            row += 1
            continue
        if number >= defined:
            return row, sample, -1
        end = first_sample[row + 1]
        while sample < end:
            if used == room:
                return row, sample, used
            to_series[used] = number
            to_time[used] = time[sample]
            to_bits[used] = bits[sample]
            used += 1
            sample += 1
        row += 1
    return row, sample, used


@njit(cache=True, nogil=True)
def _has(block, value):
    """Whether a block has a value. It checks every value without an early exit, so that the loop is vectorised."""
    has = False
    for position in range(len(block)):
        has |= block[position] == value
    return has


@njit(cache=True, nogil=True)
def find_value(column, value, least, greatest, chunk, positions):
    """Fill `positions` with the positions at which a column has a value, and return their number. The array must be as
    long as the column.

    `least` and `greatest` are bounds of the values in the first chunks, of `chunk` values each: chunks that can't have
    the value are skipped. The rest of the column is always searched.
    """
    found = 0
    for number in range(len(least) + 1):
        start, end = number * chunk, len(column)
        if number < len(least):
            if value < least[number] or greatest[number] < value:
                continue
            end = start + chunk
        for at in range(start, end, BLOCK):
            block = column[at : min(at + BLOCK, end)]
            if _has(block, value):
                for position in range(len(block)):
                    if block[position] == value:
                        positions[found] = at + position
                        found += 1
    return found


@njit(cache=True, nogil=True)
def count_rows(series, position, counts):
    """Add the number of rows of each series s to `counts[position[s]]`. Series with a negative position are not
    wanted.
    """
    for row in range(len(series)):
        to = position[series[row]]
        if to >= 0:
            counts[to] += 1


@njit(cache=True, nogil=True)
def scatter_rows(series, time, bits, position, cursor, to_time, to_bits):
    """Write each row's sample to the cursor of its position, and advance the cursor: rows keep their order."""
    for row in range(len(series)):
        to = position[series[row]]
        if to >= 0:
            at = cursor[to]
            to_time[at] = time[row]
            to_bits[at] = bits[row]
            cursor[to] = at + 1
