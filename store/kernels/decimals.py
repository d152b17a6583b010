"""Values that are decimal numbers as integers of their last digit, and back, bit for bit.

Most values of metrics are counts, or numbers that somebody rounded to a few digits. As integers they have small
steps from one to the next; as doubles they have not.
"""

import numpy as np
from numba import njit

from strandline.store.kernels.trends import restore

MAX_DIGITS = 9
# Instead of a number of digits: the values of this series stay doubles.
RAW = 15
POWERS = 10.0 ** np.arange(MAX_DIGITS + 1)
# Adding this to a double and taking it away again rounds it to an integer, if that is below the limit.
ROUNDER, LIMIT = 1.5 * 2.0**52, 2.0**51
# The bits of Prometheus' staleness marker.
STALE = np.uint64(0x7FF0_0000_0000_0002)
# A series may have one value in so many that is no such number, a staleness marker for instance.
EXCEPTION_RATIO = 16


@njit(cache=True, nogil=True)
def _scaled(value, power):
    return (value * power + ROUNDER) - ROUNDER


@njit(cache=True, nogil=True)
def _is_exact(value, bits, integers, power):
    """Whether dividing gives every bit of the value again. Zero with a sign does not; NaN compares with nothing."""
    return abs(integers) < LIMIT and integers / power == value and (integers != 0.0 or bits == 0)


@njit(cache=True, nogil=True)
def _digits(value, bits, start, end):
    """The digits that all but a few values of a series need, or RAW."""
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
    """Split series into those of integers (packed into `integers`), those that stay doubles (packed into `raw`),
    and single odd values of the former, at `odd_at` among all samples; in their place the number before them stands.

    All outputs are as long as the values, `digits` as the series; how many of `integers`, `raw` and odd ones there are.
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
    """The opposite of `to_integers` but for the odd values; `value` gets the values from `starts` up to, not including,
    `ends` of each series, one series behind the other. Integers are given as their trends, and restored here.
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
    """Put the staleness markers of the series that stay doubles into `bits`, at the places that `to_values` gives them.
    The others are among the odd values.
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
