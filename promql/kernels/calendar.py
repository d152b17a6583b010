"""Parts of dates and times in UTC, computed from seconds since the epoch in integer arithmetic.

Years start in March, so that the leap day is the last day of a year. Cycles of 400 years all have the same length.
"""

import numpy as np
from numba import njit

from strandline.promql.kernels.no_sample import NO_SAMPLE_BITS

DAY_OF_MONTH, DAY_OF_WEEK, DAY_OF_YEAR, DAYS_IN_MONTH, HOUR, MINUTE, MONTH, YEAR = range(8)
SECONDS_A_DAY = 86_400
DAYS_A_CYCLE = 146_097
# From 1 March of the year 0 to the epoch.
DAYS_BEFORE_EPOCH = 719_468
# Go counts seconds from 1 March of the year -292,277,022,400 in an unsigned 64-bit integer. Earlier times wrap around
# to the far future.
FIRST_SECOND = np.int64(-9_223_372_028_741_760_000)
MIN_INT64 = np.int64(-(2**63))
# 2**64 seconds, as days and remaining seconds.
WRAP_DAYS, WRAP_SECONDS = 213_503_982_334_601, 25_216


@njit(cache=True, nogil=True)
def _seconds(value):
    """Truncate towards zero. NaN and values out of range become the smallest integer, as in the CPU's conversion."""
    if -9223372036854775808.0 <= value < 9223372036854775808.0:
        return np.int64(value)
    return MIN_INT64


@njit(cache=True, nogil=True)
def _part(part, seconds):
    day = seconds // SECONDS_A_DAY
    second = seconds - day * SECONDS_A_DAY
    if seconds < FIRST_SECOND:
        day += WRAP_DAYS
        second += WRAP_SECONDS
        if second >= SECONDS_A_DAY:
            day += 1
            second -= SECONDS_A_DAY
    if part == HOUR:
        return second // 3_600
    if part == MINUTE:
        return second // 60 % 60
    if part == DAY_OF_WEEK:
        # The epoch was a Thursday, and Sunday is 0.
        return (day + 4) % 7
    shifted = day + DAYS_BEFORE_EPOCH
    cycle = shifted // DAYS_A_CYCLE
    day_of_cycle = shifted - cycle * DAYS_A_CYCLE
    year_of_cycle = (day_of_cycle - day_of_cycle // 1_460 + day_of_cycle // 36_524 - day_of_cycle // 146_096) // 365
    from_march = day_of_cycle - (365 * year_of_cycle + year_of_cycle // 4 - year_of_cycle // 100)
    # Five months have 153 days, from March on and again from August on.
    month_from_march = (5 * from_march + 2) // 153
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
    year = cycle * 400 + year_of_cycle + (1 if month <= 2 else 0)
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if part == DAY_OF_MONTH:
        return from_march - (153 * month_from_march + 2) // 5 + 1
    if part == MONTH:
        return month
    if part == YEAR:
        return year
    if part == DAYS_IN_MONTH:
        if month == 2:
            return 29 if is_leap else 28
        return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31
    # The day of the year: January and February are at the end of a year that starts in March.
    return from_march - 305 if month <= 2 else from_march + (61 if is_leap else 60)


@njit(cache=True, nogil=True)
def calendar_rows(part, values, out):
    """One part of each value's date and time. Values are seconds since the epoch."""
    bits, out_bits = values.view(np.uint64), out.view(np.uint64)
    for row in range(values.shape[0]):
        for step in range(values.shape[1]):
            if bits[row, step] == NO_SAMPLE_BITS:
                out_bits[row, step] = NO_SAMPLE_BITS
            else:
                out[row, step] = _part(part, _seconds(values[row, step]))
