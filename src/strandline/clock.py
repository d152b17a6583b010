"""Time as a value that is passed in, so that tests and simulations decide what time it is."""

import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Wall time for dates, monotonic time for durations; `sleep` lets at least that much monotonic time pass."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch. May jump, as wall clocks do."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment. Never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return once `monotonic` has grown by `seconds` or more; at once if that is zero or less."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            time.sleep(seconds)


class ManualClock:
    """A clock that stands still until somebody sleeps on it or moves it: the twin of `SystemClock` in tests."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._start_ms = now_ms
        self._elapsed_ns = 0

    def now_ms(self) -> int:
        return self._start_ms + self._elapsed_ns // 1_000_000

    def monotonic(self) -> float:
        return self._elapsed_ns / 1e9

    def sleep(self, seconds: float) -> None:
        # Rounded up: a sleep never ends early, not by a nanosecond.
        self._elapsed_ns += max(0, -int(-seconds * 1e9 // 1))


def wait_until(condition: Callable[[], bool], *, timeout: float, clock: Clock, poll: float = 0.05) -> bool:
    """Poll `condition` until it holds or `timeout` seconds have passed; say which. It is tried at least once, and once
    more after the last sleep, so a condition that turns true just before the deadline is seen."""
    deadline = clock.monotonic() + timeout
    while not condition():
        left = deadline - clock.monotonic()
        if left <= 0:
            return False
        clock.sleep(min(poll, left))
    return True
