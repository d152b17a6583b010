"""How fast a job goes and how long it will take, by what was seen of it in the last minute. Pure."""

from collections import deque
from dataclasses import dataclass

from strandline.jobs.breaker import errors_of
from strandline.jobs.counts import Counts
from strandline.node.recovering.formatting import count, duration

_WINDOW_S = 60.0
# Before that a speed is mostly chance.
_MIN_WINDOW_S = 5.0


@dataclass(frozen=True, slots=True)
class _Seen:
    at: float
    progress: float
    counts: Counts


class ProgressRate:
    """Follows one job. Times are those of the monotonic clock."""

    def __init__(self) -> None:
        self._seen: deque[_Seen] = deque()

    def record(self, at: float, progress: float, counts: Counts) -> None:
        """How far the job is now. Counts of a new attempt at a part may be lower: speeds are measured anew then."""
        if self._seen and (progress < self._seen[-1].progress or counts.records < self._seen[-1].counts.records):
            self._seen.clear()
        self._seen.append(_Seen(at, progress, counts))
        while len(self._seen) > 2 and at - self._seen[1].at >= _WINDOW_S:
            self._seen.popleft()

    @property
    def records_per_second(self) -> float | None:
        """None while too little was seen."""
        if not self._seen:
            return None
        first, last = self._seen[0], self._seen[-1]
        seconds = last.at - first.at
        return (last.counts.records - first.counts.records) / seconds if seconds > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """None while too little was seen, or nothing is known of the parts that are being run."""
        if not self._seen:
            return None
        first, last = self._seen[0], self._seen[-1]
        done, seconds = last.progress - first.progress, last.at - first.at
        return (1.0 - last.progress) * seconds / done if done > 0 and seconds >= _MIN_WINDOW_S else None

    def note(self, parts_done: int, parts: int) -> str:
        """All of it in a line."""
        counts = self._seen[-1].counts if self._seen else Counts()
        rate, left, errors = self.records_per_second, self.seconds_left, errors_of(counts)
        speed = f" ({count(round(rate))} a second)" if rate is not None else ""
        words = [f"{count(parts_done)} of {count(parts)} parts", f"{count(counts.records)} records{speed}"]
        if errors:
            words.append(f"{count(errors)} errors")
        if left is not None:
            words.append(f"about {duration(left)} left")
        return ", ".join(words)
