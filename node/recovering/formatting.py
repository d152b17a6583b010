"""Formats times, durations, sizes and counts for reports."""

from datetime import UTC, datetime

_UNKNOWN = "-"


def count(number: int) -> str:
    """A number with thousands separators."""
    return f"{number:,}"


def size(number: int | None) -> str:
    """A number of bytes."""
    if number is None:
        return _UNKNOWN
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if number >= factor:
            return f"{number / factor:.1f} {unit}"
    return f"{number} B"


def duration(seconds: float | None) -> str:
    """A duration in its two largest units."""
    if seconds is None:
        return _UNKNOWN
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def moment(milliseconds: int | None) -> str:
    """A time, in UTC."""
    if milliseconds is None:
        return _UNKNOWN
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S}Z"
