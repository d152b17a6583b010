"""Taking times: of a thing that is done once, and of one that is done again and again."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Latency:
    """How long something takes, in milliseconds, over so many runs; and how many things it found."""

    what: str
    found: int
    runs: int
    p50_ms: float
    p99_ms: float


class Stopwatch:
    """Adds up time."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time in this block."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - began


def latency(what: str, run: Callable[[], int], *, runs: int) -> Latency:
    """Time a thing, after a few runs that do not count. It says how many things it found."""
    found = 0
    for _ in range(max(3, runs // 20)):
        found = run()
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        run()
        times.append((time.perf_counter() - began) * 1000)
    times.sort()
    return Latency(what, found, runs, times[len(times) // 2], times[min(len(times) - 1, len(times) * 99 // 100)])
