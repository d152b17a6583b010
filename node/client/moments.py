"""Parses and formats times of the command line.

The parsers raise `ValueError` with a text that completes "... is". Days begin at midnight UTC.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from strandline.node.http.times import parse_duration, parse_step, parse_time

TIME_FORMATS: Final = '2026-11-16T10:00:00Z, 2026-11-16, seconds since 1970, now, today, yesterday, -1h or "1h ago"'

DEFAULT_LOOKBACK_MS: Final = 300_000
"""The default of `query.lookback`. The node's setting may differ."""
MAX_POINTS: Final = 11_000
"""The default of `query.max_points`. The node's setting may differ."""

_DAY_MS = 86_400_000
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_WITHOUT_ZONE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?", re.ASCII)
_FROM_NOW = re.compile(r"(?:now)?\s*([+-])\s*([0-9].*[a-z])", re.ASCII)
_AGO = re.compile(r"([0-9].*?)\s+ago", re.ASCII)
_NEGATIVE = re.compile(r"-[0-9.]+", re.ASCII)
_UNITS: Final = (("d", _DAY_MS), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))
_STEPS_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)


def parse_moment(text: str, now_ms: int) -> int:
    """A time, in milliseconds since the epoch."""
    word = text.strip().lower()
    midnight = now_ms - now_ms % _DAY_MS
    named = {"now": now_ms, "today": midnight, "yesterday": midnight - _DAY_MS}
    if word in named:
        return named[word]
    if ago := _AGO.fullmatch(word):
        return now_ms - parse_duration(ago[1])
    if shifted := _FROM_NOW.fullmatch(word):
        return now_ms + (-1 if shifted[1] == "-" else 1) * parse_duration(shifted[2])
    if _NEGATIVE.fullmatch(word):
        raise ValueError(f"a negative number; for a time before now, add a unit, such as {word}s")
    if _DATE.fullmatch(word):
        return parse_time(f"{word}T00:00:00Z")
    if _WITHOUT_ZONE.fullmatch(text.strip()):
        raise ValueError(
            "a time without a zone; add Z for UTC, or an offset such as +01:00, and the seconds if they are missing"
        )
    try:
        return parse_time(text.strip())
    except ValueError as error:
        reason = "not a valid time" if str(error).startswith("neither") else str(error)
        raise ValueError(f"{reason}; use {TIME_FORMATS}") from None


def parse_length(text: str) -> int:
    """A positive duration, or a number of seconds; in milliseconds."""
    length = parse_step(text.strip())
    if length <= 0:
        raise ValueError("not positive")
    return length


def format_time(milliseconds: int) -> str:
    """In UTC, with milliseconds if they are not 0."""
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds / 1000:.3f}"
    text = moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    return f"{text}.{milliseconds % 1000:03}Z" if milliseconds % 1000 else f"{text}Z"


def format_duration(milliseconds: int) -> str:
    """As in PromQL: "1h30m"."""
    parts, left = [], milliseconds
    for name, size in _UNITS:
        if left >= size:
            parts.append(f"{left // size}{name}")
            left %= size
    return "".join(parts) or "0s"


def default_step(length_ms: int, points: int) -> int:
    """A round step for a range of this length, with about `points` steps.

    At most `DEFAULT_LOOKBACK_MS`, because longer steps skip samples, unless this gives more than `MAX_POINTS` points.
    """
    return max(min(_round_step(length_ms, points), DEFAULT_LOOKBACK_MS), _round_step(length_ms, MAX_POINTS))


def _round_step(length_ms: int, points: int) -> int:
    """The smallest round step that divides this length into at most `points` steps."""
    needed = -(-length_ms // points)
    return next((step * 1000 for step in _STEPS_S if step * 1000 >= needed), -(-needed // _DAY_MS) * _DAY_MS)
