"""Rows of one sample each, as they arrive: taking them in, and sorting them by counting."""

import numpy as np
from numba import njit

REFUSED = np.uint32(0xFFFF_FFFF)
# Values are searched in blocks of this many; most have no match.
BLOCK = 256


@njit(cache=True, nogil=True)
def one_sample_each(series, first_sample, defined):
    """Whether every row has just one sample and a series below `defined`: then the columns can be copied as they are.

    Looks at every row, whatever it finds: without a way out the loop is done several rows at a time.
    """
    odd = 0
    for row in range(len(series)):
        odd |= (first_sample[row + 1] - first_sample[row] != 1) | (np.int64(series[row]) >= defined)
    return odd == 0


@njit(cache=True, nogil=True)
def append_rows(series, first_sample, time, bits, row, sample, defined, to_series, to_time, to_bits, used):
    """Copy the samples of rows from (`row`, `sample`) on to place `used` and behind, without those of refused rows.

    Gives the row and sample to go on with once there is room again, and the place behind the last copied sample; the
    row is `len(series)` when nothing is left. A row whose series is not below `defined` stops it with a place of -1.
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
    """Whether a value is there. Looks at all of them, whatever it finds: without a way out several are compared at a
    time.
    """
    has = False
    for place in range(len(block)):
        has |= block[place] == value
    return has


@njit(cache=True, nogil=True)
def find_value(column, value, least, greatest, chunk, places):
    """The places at which a column has a value; how many there are. `places` is as long as the column.

    `least` and `greatest` are bounds of the values in the first chunks, of `chunk` values each: a chunk that can't have
    the value is skipped. Whatever lies behind these chunks is searched.
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
                for place in range(len(block)):
                    if block[place] == value:
                        places[found] = at + place
                        found += 1
    return found


@njit(cache=True, nogil=True)
def count_rows(series, place, counts):
    """Add to `counts[place[s]]` the number of rows of each series s. A place below 0 is not wanted."""
    for row in range(len(series)):
        to = place[series[row]]
        if to >= 0:
            counts[to] += 1


@njit(cache=True, nogil=True)
def scatter_rows(series, time, bits, place, cursor, to_time, to_bits):
    """Put each row's sample where the cursor of its place stands, and move the cursor on: rows keep their order."""
    for row in range(len(series)):
        to = place[series[row]]
        if to >= 0:
            at = cursor[to]
            to_time[at] = time[row]
            to_bits[at] = bits[row]
            cursor[to] = at + 1
