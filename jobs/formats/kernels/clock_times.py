"""Parses dates and times to milliseconds since 1970.

A pattern is a list of steps: a literal byte, or a directive, which is negative. A text without an offset is in local
time, which two arrays convert to UTC: the offset for local times from `breaks[i - 1]` to `breaks[i]` (exclusive) is
`offsets[i]` seconds. Local times are in seconds since 1970 by local clocks.
"""

import numpy as np
from numba import njit

from strandline.jobs.formats.kernels.decimals import BAD, OUT_OF_RANGE
from strandline.kernels.machine import load_u8

YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, FRACTION, OFFSET, MONTH_NAME = -1, -2, -3, -4, -5, -6, -7, -8, -9
MAX_FRACTION_DIGITS = 9  # Digits of a second's fraction: nanoseconds.

MONTHS = np.array(
    [
        int.from_bytes(name, "big")
        for name in (b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec")
    ]
)
COLON, PLUS, MINUS, UPPER_Z, LOWER_Z, UPPER_T, LOWER_T, SPACE, DOT = tuple(b":+-ZzTt .")


@njit(cache=True)
def _number(at, end, min_digits, max_digits):
    """A number of `min_digits` to `max_digits` digits: (number, position after it or `BAD`)."""
    number, start = 0, at
    while at < end and at - start < max_digits:
        digit = np.int64(load_u8(at)) - 0x30
        if digit < 0 or digit > 9:
            break
        number = number * 10 + digit
        at += 1
    return number, at if at - start >= min_digits else BAD


@njit(cache=True)
def _fraction(at, end):
    """The fraction of a second, truncated: (milliseconds, position after it or `BAD`)."""
    number, after = _number(at, end, 1, MAX_FRACTION_DIGITS)
    digits = after - at
    while digits > 3:
        number //= 10
        digits -= 1
    while 0 < digits < 3:
        number *= 10
        digits += 1
    return number, after


@njit(cache=True)
def _offset(at, end, colon_needed):
    """`Z`, `+hh:mm`, and unless a colon is needed `+hhmm` and `+hh`: (seconds east, position after it or `BAD`)."""
    if at >= end:
        return 0, BAD
    sign = load_u8(at)
    at += 1
    if sign == UPPER_Z or sign == LOWER_Z:
        return 0, at
    if sign != PLUS and sign != MINUS:
        return 0, BAD
    hours, at = _number(at, end, 2, 2)
    if at < 0:
        return 0, BAD
    minutes = 0
    if at < end and load_u8(at) == COLON:
        minutes, at = _number(at + 1, end, 2, 2)
    elif colon_needed:
        return 0, BAD
    elif at < end:
        found, after = _number(at, end, 2, 2)
        if after > 0:
            minutes, at = found, after
    if at < 0 or hours > 23 or minutes > 59:
        return 0, BAD
    seconds = hours * 3600 + minutes * 60
    return -seconds if sign == MINUS else seconds, at


@njit(cache=True)
def _is_date(year, month, day):
    if month < 1 or month > 12 or day < 1 or year < 1:
        return False
    if month == 2:
        return day <= 28 + (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))
    return day <= 30 + ((month + (month > 7)) & 1)


@njit(cache=True)
def _seconds(year, month, day, hour, minute, second):
    """Seconds since 1970, without a time zone."""
    # In years that begin in March, the leap day is the last day.
    year -= month <= 2
    month = (month + 9) % 12
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 1 - 719_468
    return ((days * 24 + hour) * 60 + minute) * 60 + second


@njit(cache=True)
def offset_at(local, breaks, offsets):
    """The offset from UTC at a local time."""
    low, high = 0, len(breaks)
    while low < high:
        middle = (low + high) // 2
        if breaks[middle] <= local:
            low = middle + 1
        else:
            high = middle
    return offsets[low]


@njit(cache=True)
def read_rfc3339(at, end):
    """Parse an RFC 3339 time, which has an offset: (milliseconds, position after it or `BAD`)."""
    year, at = _number(at, end, 4, 4)
    if at < 0 or at + 15 > end or load_u8(at) != MINUS or load_u8(at + 3) != MINUS:
        return 0, BAD
    # At least fifteen bytes are left: "-mm-ddThh:mm:ss". Each number has two digits.
    month, month_end = _number(at + 1, at + 3, 2, 2)
    day, day_end = _number(at + 4, at + 6, 2, 2)
    between = load_u8(at + 6)
    hour, hour_end = _number(at + 7, at + 9, 2, 2)
    minute, minute_end = _number(at + 10, at + 12, 2, 2)
    second, second_end = _number(at + 13, at + 15, 2, 2)
    if month_end < 0 or day_end < 0 or hour_end < 0 or minute_end < 0 or second_end < 0:
        return 0, BAD
    if load_u8(at + 9) != COLON or load_u8(at + 12) != COLON:
        return 0, BAD
    if between != UPPER_T and between != LOWER_T and between != SPACE:
        return 0, BAD
    if not _is_date(year, month, day) or hour > 23 or minute > 59 or second > 59:
        return 0, BAD
    at = second_end
    millis = 0
    if at < end and load_u8(at) == DOT:
        millis, at = _fraction(at + 1, end)
        if at < 0:
            return 0, BAD
    east, at = _offset(at, end, True)
    return (_seconds(year, month, day, hour, minute, second) - east) * 1000 + millis, at


@njit(cache=True)
def read_pattern(at, end, steps, breaks, offsets, earliest, latest):
    """Parse a time by a pattern: (milliseconds, position after it, or `BAD`, or `OUT_OF_RANGE` for local times that are
    not between `earliest` and `latest`).
    """
    year, month, day, hour, minute, second, millis, east = 1970, 1, 1, 0, 0, 0, 0, 0
    local = True
    for step in steps:
        if step >= 0:
            if at >= end or load_u8(at) != step:
                return 0, BAD
            at += 1
        elif step == YEAR:
            year, at = _number(at, end, 4, 4)
        elif step == MONTH:
            month, at = _number(at, end, 1, 2)
        elif step == DAY:
            day, at = _number(at, end, 1, 2)
        elif step == HOUR:
            hour, at = _number(at, end, 1, 2)
        elif step == MINUTE:
            minute, at = _number(at, end, 1, 2)
        elif step == SECOND:
            second, at = _number(at, end, 1, 2)
        elif step == FRACTION:
            millis, at = _fraction(at, end)
        elif step == OFFSET:
            east, at = _offset(at, end, False)
            local = False
        else:
            if at + 3 > end:
                return 0, BAD
            name = (np.int64(load_u8(at)) << 16) | (np.int64(load_u8(at + 1)) << 8) | np.int64(load_u8(at + 2))
            name |= 0x202020
            month = 0
            for i in range(12):
                if MONTHS[i] == name:
                    month = i + 1
            at += 3
        if at < 0:
            return 0, BAD
    if not _is_date(year, month, day) or hour > 23 or minute > 59 or second > 59:
        return 0, BAD
    seconds = _seconds(year, month, day, hour, minute, second)
    if local:
        if seconds < earliest or seconds >= latest:
            return 0, OUT_OF_RANGE
        east = offset_at(seconds, breaks, offsets)
    return (seconds - east) * 1000 + millis, at
