"""The readiness of consecutive hours, for the page."""

import threading
from dataclasses import dataclass
from typing import Protocol

from strandline.clock import Clock
from strandline.recovery.periods import Period
from strandline.recovery.readiness import Readiness, StoredDataset, Verdict, readiness

# An hour becomes ready only once, so that a few seconds of delay don't matter.
_CACHE_S = 5.0


@dataclass(frozen=True, slots=True)
class HourReadiness:
    """One UTC hour. `behind` are the partitions that are not stored up to its end, `losses` the number of accepted
    losses.
    """

    hour: str
    start: int
    verdict: Verdict
    revision: int
    late_samples: int
    reason: str = ""
    behind: tuple[int, ...] = ()
    losses: int = 0


class HoursSource(Protocol):
    """Determines whether hours are ready. It may read manifests, and must be called in worker threads."""

    def hours(self, first: int, last: int) -> tuple[HourReadiness, ...]:
        """The hours from `first` to `last`, inclusive, numbered since the epoch, oldest first. Raises `Retryable` if
        this can't be determined now.
        """
        ...


class CachedHours:
    """A source that caches the last answer for a few seconds, for many open pages."""

    def __init__(self, source: HoursSource, clock: Clock, *, cache_s: float = _CACHE_S) -> None:
        self._source, self._clock, self._cache_s = source, clock, cache_s
        self._lock = threading.Lock()
        self._range: tuple[int, int] | None = None
        self._answer: tuple[HourReadiness, ...] = ()
        self._expires_s = 0.0

    def hours(self, first: int, last: int) -> tuple[HourReadiness, ...]:
        """The source's answer. Its errors are not cached."""
        with self._lock:
            if self._range != (first, last) or self._clock.monotonic() >= self._expires_s:
                self._answer = self._source.hours(first, last)
                self._range, self._expires_s = (first, last), self._clock.monotonic() + self._cache_s
            return self._answer


def hours_between(stored: StoredDataset, first: int, last: int) -> tuple[HourReadiness, ...]:
    """The hours from `first` to `last`, according to manifests that start at the latest at the bucket before the first
    hour. Raises `ManifestInconsistent`.
    """
    return tuple(_hour_readiness(Period(hour), readiness(stored, Period(hour))) for hour in range(first, last + 1))


def _hour_readiness(hour: Period, found: Readiness) -> HourReadiness:
    return HourReadiness(
        hour=found.period,
        start=hour.start,
        verdict=found.verdict,
        revision=found.revision,
        late_samples=found.late_samples,
        reason=found.reason,
        behind=tuple(one.shard for one in found.behind),
        losses=len(found.losses),
    )
