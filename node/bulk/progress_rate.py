"""The speed of a job and its remaining time, estimated from the last minute. Pure."""

from collections import deque
from dataclasses import dataclass

from strandline.jobs.breaker import errors_of
from strandline.jobs.counts import Counts
from strandline.node.recovering.formatting import count, duration

_WINDOW_S = 60.0
# A shorter window gives no reliable estimate.
_MIN_WINDOW_S = 5.0


@dataclass(frozen=True, slots=True)
class _Observation:
    at: float
    progress: float
    counts: Counts


class ProgressRate:
    """The rate of one job. Times are those of the monotonic clock."""

    def __init__(self) -> None:
        self._seen: deque[_Observation] = deque()

    def record(self, at: float, progress: float, counts: Counts) -> None:
        """Record the current progress. A new attempt at a part may lower the counts; the measurement then restarts."""
        if self._seen and (progress < self._seen[-1].progress or counts.records < self._seen[-1].counts.records):
            self._seen.clear()
        self._seen.append(_Observation(at, progress, counts))
        while len(self._seen) > 2 and at - self._seen[1].at >= _WINDOW_S:
            self._seen.popleft()

    @property
    def records_per_second(self) -> float | None:
        """None before the second observation."""
        if not self._seen:
            return None
        first, last = self._seen[0], self._seen[-1]
        seconds = last.at - first.at
        return (last.counts.records - first.counts.records) / seconds if seconds > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """None without enough observations or without progress."""
        if not self._seen:
            return None
        first, last = self._seen[0], self._seen[-1]
        done, seconds = last.progress - first.progress, last.at - first.at
        return (1.0 - last.progress) * seconds / done if done > 0 and seconds >= _MIN_WINDOW_S else None

    def note(self, parts_done: int, parts: int) -> str:
        """Progress, rate, errors and remaining time in one line."""
        counts = self._seen[-1].counts if self._seen else Counts()
        rate, left, errors = self.records_per_second, self.seconds_left, errors_of(counts)
        speed = f" ({count(round(rate))}/s)" if rate is not None else ""
        notes = [f"{count(parts_done)} of {count(parts)} parts", f"{count(counts.records)} records{speed}"]
        if errors:
            notes.append(f"{count(errors)} errors")
        if left is not None:
            notes.append(f"about {duration(left)} left")
        return ", ".join(notes)
