"""Clocks. Code gets its clock as a parameter, so that tests and simulations control the time."""

import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Wall time for dates, and monotonic time for durations."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch. May jump, as wall clocks do."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary fixed moment. Never decreases."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return when `monotonic` has increased by at least `seconds`; immediately if `seconds` is not positive."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            time.sleep(seconds)


class ManualClock:
    """The counterpart of `SystemClock` in tests: its time advances only by `sleep`."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._start_ms = now_ms
        self._elapsed_ns = 0

    def now_ms(self) -> int:
        return self._start_ms + self._elapsed_ns // 1_000_000

    def monotonic(self) -> float:
        return self._elapsed_ns / 1e9

    def sleep(self, seconds: float) -> None:
        # Rounded up to a nanosecond: a sleep never ends early.
        self._elapsed_ns += max(0, -int(-seconds * 1e9 // 1))


def wait_until(condition: Callable[[], bool], *, timeout: float, clock: Clock, poll: float = 0.05) -> bool:
    """Poll `condition` until it holds or `timeout` seconds have passed, and return whether it held. It is evaluated at
    least once, and again after the last sleep, so a condition that becomes true just before the deadline is noticed."""
    deadline = clock.monotonic() + timeout
    while not condition():
        left = deadline - clock.monotonic()
        if left <= 0:
            return False
        clock.sleep(min(poll, left))
    return True
