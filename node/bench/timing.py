"""Measures the time of single operations, and the latency of repeated ones."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Latency:
    """The latency of an operation in milliseconds over a number of runs, and the number of its results."""

    what: str
    found: int
    runs: int
    p50_ms: float
    p99_ms: float


class Stopwatch:
    """Accumulates time."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Measure the time of this block."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - began


def latency(what: str, run: Callable[[], int], *, runs: int) -> Latency:
    """Measure an operation after some warm-up runs. `run` returns the number of its results."""
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
