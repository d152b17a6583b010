"""Turns values that are decimal numbers into integer multiples of their last digit, and back, bit for bit.

Most values of metrics are counts, or numbers rounded to a few digits. As integers they have small differences; as
doubles they don't.
"""

import numpy as np
from numba import njit

from strandline.store.kernels.trends import restore

MAX_DIGITS = 9
# Instead of a number of digits: the series is stored as doubles.
RAW = 15
POWERS = 10.0 ** np.arange(MAX_DIGITS + 1)
# Adding this to a double and subtracting it again rounds the double to an integer, if it is below the limit.
ROUNDER, LIMIT = 1.5 * 2.0**52, 2.0**51
# The bits of Prometheus' staleness marker.
STALE = np.uint64(0x7FF0_0000_0000_0002)
# One value in this many of a series may be no such number, for instance a staleness marker.
EXCEPTION_RATIO = 16


@njit(cache=True, nogil=True)
def _scaled(value, power):
    return (value * power + ROUNDER) - ROUNDER


@njit(cache=True, nogil=True)
def _is_exact(value, bits, integers, power):
    """Whether the division restores every bit of the value. It doesn't for negative zero; a NaN is never equal."""
    return abs(integers) < LIMIT and integers / power == value and (integers != 0.0 or bits == 0)


@njit(cache=True, nogil=True)
def _digits(value, bits, start, end):
    """Return the number of digits that almost all values of a series need, or RAW."""
    digits, odd = 0, 0
    for at in range(start, end):
        if _is_exact(value[at], bits[at], _scaled(value[at], POWERS[digits]), POWERS[digits]):
            continue
        more = digits + 1
        while more <= MAX_DIGITS and not _is_exact(value[at], bits[at], _scaled(value[at], POWERS[more]), POWERS[more]):
            more += 1
        if more <= MAX_DIGITS:
            digits = more
        else:
            odd += 1
            if odd * EXCEPTION_RATIO > end - start:
                return RAW
    return digits


@njit(cache=True, nogil=True)
def to_integers(value, first, digits, integers, raw, odd_at, odd_bits):
    """Divide the values into series of integers (packed into `integers`), series of doubles (packed into `raw`), and
    single odd values of the former, with their indices among all samples in `odd_at`. An odd value is replaced by the
    integer before it.

    All outputs are as long as the values, `digits` as the series. Returns the numbers of integers, doubles and odd
    values.
    """
    bits = value.view(np.uint64)
    n_integers = n_raw = n_odd = 0
    for series in range(len(first) - 1):
        start, end = first[series], first[series + 1]
        digits[series] = _digits(value, bits, start, end)
        if digits[series] == RAW:
            raw[n_raw : n_raw + end - start] = value[start:end]
            n_raw += end - start
            continue
        power, last = POWERS[digits[series]], np.int64(0)
        for at in range(start, end):
            scaled = _scaled(value[at], power)
            if _is_exact(value[at], bits[at], scaled, power):
                last = np.int64(scaled)
            else:
                odd_at[n_odd], odd_bits[n_odd] = at, bits[at]
                n_odd += 1
            integers[n_integers] = last
            n_integers += 1
    return n_integers, n_raw, n_odd


@njit(cache=True, nogil=True)
def to_values(digits, counts, starts, ends, begin, slope, kind, level, residuals, residual_start, raw, value):
    """The inverse of `to_integers`, without the odd values. `value` gets the values `[starts, ends)` of each series,
    one series after the other. Integers are given as their trends, and restored here.
    """
    longest = 0
    for series in range(len(counts)):
        if ends[series] > starts[series]:
            longest = max(longest, counts[series])
    integers = np.empty(longest, dtype=np.int64)
    n_integers = n_raw = to = 0
    for series in range(len(counts)):
        start, end = starts[series], ends[series]
        if digits[series] == RAW:
            value[to : to + end - start] = raw[n_raw + start : n_raw + end]
            n_raw += counts[series]
        else:
            if end > start:
                sequence, power = n_integers, POWERS[digits[series]]
                restore(
                    begin[sequence],
                    slope[sequence],
                    kind[sequence],
                    level[sequence],
                    residuals,
                    residual_start[sequence],
                    end,
                    integers,
                    0,
                )
                if digits[series] == 0:
                    for at in range(end - start):
                        value[to + at] = integers[start + at]
                else:
                    for at in range(end - start):
                        value[to + at] = integers[start + at] / power
            n_integers += 1
        to += end - start


@njit(cache=True, nogil=True)
def to_stale_markers(digits, counts, starts, ends, raw_bits, bits):
    """Write the staleness markers of the series of doubles into `bits`, at the positions that `to_values` uses. Those
    of other series are odd values.
    """
    n_raw = to = 0
    for series in range(len(counts)):
        start, end = starts[series], ends[series]
        if digits[series] == RAW:
            for at in range(end - start):
                if raw_bits[n_raw + start + at] == STALE:
                    bits[to + at] = STALE
            n_raw += counts[series]
        to += end - start
