"""Local times: divides series into jobs by the time zone in a label. Pure.

There is one job for each whole-hour offset from UTC that occurs. Offsets are rounded down: +12:15 counts as +12:00, and
-03:30 as -04:00. A job is due the next time that it is the given local time at its offset. A zone belongs to the
earliest job at whose due time the zone has that offset. Around a change of daylight saving time there may be two such
jobs; or none, if the change skips the local time. In that case the zone belongs to the job of the offset that it has
when the job of its present offset is due. So each zone is in exactly one job.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS
_MINUTE_MS: Final = 60_000
# Wider than any offset in use, -12 to +14.
_OFFSETS: Final = range(-24, 25)


@dataclass(frozen=True, slots=True)
class LocalTime:
    """A time of day."""

    hour: int
    minute: int

    @classmethod
    def parse(cls, written: str) -> "LocalTime":
        """Parse HH:MM. Raises ValueError."""
        hour, separator, minute = written.partition(":")
        valid = separator and len(hour) == len(minute) == 2 and (hour + minute).isascii() and (hour + minute).isdigit()
        if not valid or int(hour) > 23 or int(minute) > 59:
            raise ValueError(f"{written!r} is not a time of day such as 09:00")
        return cls(int(hour), int(minute))

    @property
    def milliseconds(self) -> int:
        """Milliseconds since midnight."""
        return self.hour * _HOUR_MS + self.minute * _MINUTE_MS


@dataclass(frozen=True, slots=True)
class ZoneGroup:
    """The zones of a job: their offset in hours, and when the job is due."""

    offset: int
    due_at: int
    zones: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ZoneGroups:
    """All jobs, ordered by due time, and the names that are not time zones."""

    groups: tuple[ZoneGroup, ...]
    unknown: tuple[str, ...]


def group_zones(names: Iterable[str], local: LocalTime, now: int) -> ZoneGroups:
    """Divide zones into jobs."""
    found: dict[int, list[str]] = {}
    unknown: list[str] = []
    for name in sorted(set(names)):
        if is_zone(name):
            found.setdefault(job_offset(name, local, now), []).append(name)
        else:
            unknown.append(name)
    groups = [ZoneGroup(offset, due_at(offset, local, now), tuple(zones)) for offset, zones in found.items()]
    return ZoneGroups(tuple(sorted(groups, key=lambda one: one.due_at)), tuple(unknown))


def job_offset(zone: str, local: LocalTime, now: int) -> int:
    """The offset, in whole hours, of the job that a zone belongs to."""
    agreeing = [offset for offset in _OFFSETS if whole_offset(zone, due_at(offset, local, now)) == offset]
    if agreeing:
        return min(agreeing, key=lambda offset: due_at(offset, local, now))
    return whole_offset(zone, due_at(whole_offset(zone, now), local, now))


def due_at(offset: int, local: LocalTime, now: int) -> int:
    """The next time that it is the local time at a whole-hour offset."""
    wanted = local.milliseconds - offset * _HOUR_MS
    return now + (wanted - now) % _DAY_MS


def whole_offset(zone: str, moment: int) -> int:
    """The offset of a zone at a time, in hours, rounded down."""
    shift = _zone(zone).utcoffset(datetime.fromtimestamp(moment / 1000, UTC).astimezone(_zone(zone)))
    return int(shift.total_seconds() // 3600) if shift is not None else 0


def is_zone(name: str) -> bool:
    """Whether it is the name of an IANA time zone."""
    return name in _zone_names()


@lru_cache(maxsize=1)
def _zone_names() -> frozenset[str]:
    return frozenset(available_timezones())


@lru_cache(maxsize=1024)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)
