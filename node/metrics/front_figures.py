"""The counters of the HTTP front. One instance per process, thread-safe."""

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from strandline.clock import Clock
from strandline.node.metrics.families import Distribution
from strandline.node.query.answer_memory import AnswerMemory
from strandline.node.shard.report import ProcessFigures

OTHER = "other"
"""The handler of paths without a route."""
ANSWERED = "answered"
"""The outcome of a request to shards that was answered without a warning."""
BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the histogram of request durations."""


@dataclass(frozen=True, slots=True)
class FrontCounts:
    """A snapshot of the counters. Requests are by handler and code, queries by kind of request and outcome, cut-off
    answers by reason.
    """

    requests: Mapping[tuple[str, str], int]
    seconds: Mapping[str, Distribution]
    in_flight: int
    queries: Mapping[tuple[str, str], int]
    cut_off: Mapping[str, int]
    series: int
    samples: int
    started_at: int
    process: ProcessFigures


class FrontFigures:
    """Counts requests and queries."""

    def __init__(self, clock: Clock, answer_memory: AnswerMemory) -> None:
        """The current time counts as the start of the process."""
        self.answer_memory = answer_memory
        self._started_at = clock.now_ms()
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str]] = Counter()
        self._durations: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}
        self._in_flight = 0
        self._queries: Counter[tuple[str, str]] = Counter()
        self._cut_off: Counter[str] = Counter()
        self._series = self._samples = 0

    def began(self) -> None:
        """A request has started."""
        with self._lock:
            self._in_flight += 1

    def ended(self, handler: str | None, code: int, seconds: float) -> None:
        """A request was answered, or its client has disconnected. `handler` is the path pattern of its route, None if
        it has none: clients must not be able to create label values.
        """
        with self._lock:
            self._in_flight -= 1
            self._observe(handler or OTHER, str(code), seconds)

    def cut_off(self, reason: str) -> None:
        """An answer was cut off while it was being sent."""
        with self._lock:
            self._cut_off[reason] += 1

    def count_query(self, ask: str, outcome: str, *, series: int = 0, samples: int = 0) -> None:
        """A request to shards has ended, with this number of series and samples."""
        with self._lock:
            self._queries[ask, outcome] += 1
            self._series += series
            self._samples += samples

    def counts(self) -> FrontCounts:
        """A snapshot of all counters."""
        with self._lock:
            return FrontCounts(
                requests=dict(self._requests),
                seconds={
                    handler: _distribution(durations, self._seconds[handler])
                    for handler, durations in self._durations.items()
                },
                in_flight=self._in_flight,
                queries=dict(self._queries),
                cut_off=dict(self._cut_off),
                series=self._series,
                samples=self._samples,
                started_at=self._started_at,
                process=ProcessFigures.now(),
            )

    def _observe(self, handler: str, code: str, seconds: float) -> None:
        self._requests[handler, code] += 1
        durations = self._durations.get(handler)
        if durations is None:
            durations = self._durations[handler] = [0] * (len(BOUNDS_S) + 1)
        durations[bisect_left(BOUNDS_S, seconds)] += 1
        self._seconds[handler] = self._seconds.get(handler, 0.0) + seconds


def _distribution(durations: list[int], total: float) -> Distribution:
    *cumulative, count = accumulate(durations)
    return Distribution(BOUNDS_S, cumulative, count, total)
