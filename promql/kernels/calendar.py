"""Parts of dates and times in UTC, from seconds since the epoch, in integers.

Years are counted from March on, so that the day that leap years add is the last one, and in cycles of 400 years, which
are all equally long.
"""

import numpy as np
from numba import njit

from strandline.promql.kernels.no_sample import NO_SAMPLE_BITS

DAY_OF_MONTH, DAY_OF_WEEK, DAY_OF_YEAR, DAYS_IN_MONTH, HOUR, MINUTE, MONTH, YEAR = range(8)
SECONDS_A_DAY = 86_400
DAYS_A_CYCLE = 146_097
# From the first of March of the year 0 to the epoch.
DAYS_BEFORE_EPOCH = 719_468
# Go counts seconds from the first of March of the year -292,277,022,400 in 64 bits without a sign. Earlier moments wrap
# around to the far future.
FIRST_SECOND = np.int64(-9_223_372_028_741_760_000)
MIN_INT64 = np.int64(-(2**63))
# 2**64 seconds, in days and the seconds left over.
WRAP_DAYS, WRAP_SECONDS = 213_503_982_334_601, 25_216


@njit(cache=True, nogil=True)
def _seconds(value):
    """Towards zero. What does not fit, and NaN, is the least integer, as the machine has it."""
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
    # 153 days are five months, from March on and again from August on.
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
    # The day of the year: January and February are the end of a year from March on.
    return from_march - 305 if month <= 2 else from_march + (61 if is_leap else 60)


@njit(cache=True, nogil=True)
def calendar_rows(part, values, out):
    """One part of the moment that each value is, in seconds since the epoch."""
    bits, out_bits = values.view(np.uint64), out.view(np.uint64)
    for row in range(values.shape[0]):
        for step in range(values.shape[1]):
            if bits[row, step] == NO_SAMPLE_BITS:
                out_bits[row, step] = NO_SAMPLE_BITS
            else:
                out[row, step] = _part(part, _seconds(values[row, step]))
