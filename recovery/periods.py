"""Hours and days as text, always in UTC.

An hour is "2026-11-15T10", a day "2026-11-15". Zones are refused, including "Z": where a zone is optional, it is
eventually left out by someone who means local time.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from strandline.errors import ExitCode, Fatal

HOUR = 3_600_000
HOURS_A_DAY = 24

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATE = r"\d{4}-\d{2}-\d{2}"
_PERIOD = re.compile(rf"({_DATE})(?:T(\d{{2}}))?", re.ASCII)
_MOMENT = re.compile(rf"{_DATE}(?:T\d{{2}}(?::\d{{2}}(?::\d{{2}})?)?)?", re.ASCII)
_WITH_ZONE = re.compile(rf"{_DATE}T[\d:.]*(?:[zZ]|[+-]\d{{2}}(?::?\d{{2}})?|\s*[A-Za-z]+[A-Za-z/_]*)", re.ASCII)
_WITH_MINUTES = re.compile(rf"{_DATE}[T ]\d{{2}}:.*", re.ASCII)


class InvalidTime(Fatal):
    """The text is not an hour, day or time in a known format."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class Period:
    """A number of whole hours since the epoch: one hour or a day."""

    first_hour: int
    hours: int = 1

    @property
    def start(self) -> int:
        """The first millisecond."""
        return self.first_hour * HOUR

    @property
    def end(self) -> int:
        """The first millisecond after the period."""
        return (self.first_hour + self.hours) * HOUR

    def each_hour(self) -> Iterator["Period"]:
        """Its hours, oldest first."""
        for hour in range(self.first_hour, self.first_hour + self.hours):
            yield Period(hour)

    def __str__(self) -> str:
        return utc_text(self.start)[: len("2026-11-15T10") if self.hours == 1 else len("2026-11-15")]


def parse_period(text: str) -> Period:
    """Parse an hour or a day. Raises `InvalidTime`."""
    written = _PERIOD.fullmatch(text)
    if written is not None:
        day, hour = written.groups()
        first = _moment(text, f"{day}T{hour or '00'}:00:00") // HOUR
        return Period(first) if hour is not None else Period(first, HOURS_A_DAY)
    remedy = "Write an hour in UTC as 2026-11-15T10, or a day as 2026-11-15"
    if _WITH_ZONE.fullmatch(text):
        raise InvalidTime(f"{text!r} has a time zone, but hours and days are always in UTC", remedy=remedy)
    if _WITH_MINUTES.fullmatch(text):
        raise InvalidTime(f"{text!r} has minutes, but only whole hours and days become ready", remedy=remedy)
    raise InvalidTime(f"{text!r} is neither an hour nor a day", remedy=remedy)


def parse_moment(text: str) -> int:
    """Parse a time, to the second; return milliseconds. Raises `InvalidTime`."""
    if _MOMENT.fullmatch(text):
        return _moment(text, text + "T00:00:00"[len(text) - len("2026-11-15") :])
    remedy = "Write a time in UTC as 2026-11-15T10:30, with or without seconds, or as 2026-11-15T10 or 2026-11-15"
    if _WITH_ZONE.fullmatch(text):
        raise InvalidTime(f"{text!r} has a time zone, but times are always in UTC", remedy=remedy)
    raise InvalidTime(f"{text!r} is not a time", remedy=remedy)


def utc_text(time: int) -> str:
    """A time as text, to the second: 2026-11-15T10:00:00Z."""
    moment = _EPOCH + timedelta(milliseconds=time)
    return moment.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def _moment(text: str, iso: str) -> int:
    try:
        moment = datetime.strptime(iso, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
    except ValueError as error:
        raise InvalidTime(f"{text!r} is not a valid time: {error}", remedy="Check the date and the hour") from None
    return (moment - _EPOCH) // timedelta(milliseconds=1)
