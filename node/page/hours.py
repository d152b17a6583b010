"""Hours in a row, and whether each is ready: what the page's strip shows."""

import threading
from dataclasses import dataclass
from typing import Protocol

from strandline.clock import Clock
from strandline.recovery.periods import Period
from strandline.recovery.readiness import Readiness, StoredDataset, Verdict, readiness

# An hour becomes ready once; nobody needs to know within a second.
_REMEMBER_S = 5.0


@dataclass(frozen=True, slots=True)
class HourReadiness:
    """One hour of UTC. `behind` are the partitions that keep it from being ready, `losses` how many ranges of offsets
    a person has accepted as lost.
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
    """Whether hours are ready. To be asked from worker threads: it may read manifests."""

    def hours(self, first: int, last: int) -> tuple[HourReadiness, ...]:
        """The hours from `first` to `last`, counted since the epoch, both included, oldest first. Raises `Retryable`
        if nobody can tell now.
        """
        ...


class CachedHours:
    """A source that many pages may ask at once: what one was told is told to the others for some seconds."""

    def __init__(self, source: HoursSource, clock: Clock, *, cache_s: float = _REMEMBER_S) -> None:
        self._source, self._clock, self._cache_s = source, clock, cache_s
        self._lock = threading.Lock()
        self._asked: tuple[int, int] | None = None
        self._told: tuple[HourReadiness, ...] = ()
        self._until_s = 0.0

    def hours(self, first: int, last: int) -> tuple[HourReadiness, ...]:
        """As the source's. What it raises is not remembered."""
        with self._lock:
            if self._asked != (first, last) or self._clock.monotonic() >= self._until_s:
                self._told = self._source.hours(first, last)
                self._asked, self._until_s = (first, last), self._clock.monotonic() + self._cache_s
            return self._told


def hours_between(stored: StoredDataset, first: int, last: int) -> tuple[HourReadiness, ...]:
    """The same, by manifests that reach back to the bucket before the first hour's. Raises `ManifestInconsistent`."""
    return tuple(_standing(Period(hour), readiness(stored, Period(hour))) for hour in range(first, last + 1))


def _standing(hour: Period, found: Readiness) -> HourReadiness:
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
