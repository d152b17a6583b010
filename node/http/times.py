"""Parses times and durations as Prometheus does, in milliseconds.

Each function raises `ValueError` with a text that completes "the parameter is ...".
"""

import re
from datetime import UTC, datetime, timedelta, timezone
from math import isinf
from typing import Final

# Beyond any sample, and small enough that sums of a few of them do not overflow 64 bits.
EARLIEST_MS: Final = -(2**53)
LATEST_MS: Final = 2**53
# What clients of Prometheus send for the minimum and maximum time.
_BOUNDARIES: Final = {
    "-292273086-05-16T16:47:06Z": EARLIEST_MS,
    "292277025-08-18T07:12:54.999999999Z": LATEST_MS,
    "292277025-08-18T07:12:54.999Z": LATEST_MS,
}
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?", re.ASCII)
_RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,18}))?"
    r"(?:([Zz])|([+-])([0-9]{2}):([0-9]{2}))",
    re.ASCII,
)
_DURATION = re.compile(
    r"(?:([0-9]+)y)?(?:([0-9]+)w)?(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?(?:([0-9]+)ms)?", re.ASCII
)
_UNITS_MS = (31_536_000_000, 604_800_000, 86_400_000, 3_600_000, 60_000, 1000, 1)
_MAX_LENGTH = 64
# Numbers of at most this many digits are in the range.
_MAX_SECONDS_DIGITS = 12


def parse_time(text: str) -> int:
    """Seconds since the epoch, or RFC 3339, to the millisecond. A time outside of the range is clamped to it. A number
    that is too large for a float is refused.
    """
    if text.isascii() and text.isdigit() and len(text) <= _MAX_SECONDS_DIGITS:
        return int(text) * 1000
    if text in _BOUNDARIES:
        return _BOUNDARIES[text]
    if len(text) <= _MAX_LENGTH and _NUMBER.fullmatch(text):
        seconds = float(text)
        if isinf(seconds):
            raise ValueError("too large a number")
        return _clamped(seconds * 1000)
    written = _RFC3339.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if written is None:
        hint = "; a + in a URL has to be written as %2B" if re.search(r"T.* [0-9]{2}:", text) else ""
        raise ValueError(f"neither seconds since 1970 nor a time such as 2026-11-16T10:00:00Z{hint}")
    year, month, day, hour, minute, second = map(int, written.group(1, 2, 3, 4, 5, 6))
    zone: timezone = UTC
    if written[9]:
        ahead = timedelta(hours=int(written[10]), minutes=int(written[11]))
        if ahead >= timedelta(days=1) or int(written[11]) > 59:
            raise ValueError("in a time zone that does not exist")
        zone = timezone(ahead if written[9] == "+" else -ahead)
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=zone)
    except ValueError:
        raise ValueError("a date or a time of day that does not exist") from None
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    # Fractions of a millisecond are dropped, as in Prometheus.
    return (since.days * 86_400 + since.seconds) * 1000 + int((written[7] or "0").ljust(3, "0")[:3])


def parse_duration(text: str) -> int:
    """PromQL's: "5m", "1h30m", "1d", units from the longest to the shortest, each once; or "0"."""
    if text == "0":
        return 0
    written = _DURATION.fullmatch(text) if 0 < len(text) <= _MAX_LENGTH else None
    if written is None:
        raise ValueError('not a duration such as "30s", "5m" or "1h30m"')
    total = sum(int(count) * unit for count, unit in zip(written.groups("0"), _UNITS_MS, strict=True))
    if total > LATEST_MS:
        raise ValueError("too long")
    return total


def parse_step(text: str) -> int:
    """A duration, or its seconds as a number."""
    if len(text) <= _MAX_LENGTH and _NUMBER.fullmatch(text):
        milliseconds = float(text) * 1000
        if abs(milliseconds) > LATEST_MS:
            raise ValueError("too long")
        if milliseconds and not round(milliseconds):
            raise ValueError("shorter than a millisecond")
        return round(milliseconds)
    return parse_duration(text)


def _clamped(milliseconds: float) -> int:
    # The multiplication may have made it infinite.
    return round(max(float(EARLIEST_MS), min(float(LATEST_MS), milliseconds)))
