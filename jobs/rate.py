"""The rate of a job: a token bucket as a value, and limits that say how long to wait.

`--rate` bounds the samples a second of all parts that a worker runs at once, wherever they run: each asks the worker
before a chunk lands. A part waits before it opens a transaction, never within one.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from strandline.clock import Clock


class Throttle(Protocol):
    """Holds samples back before they land. May be used by several threads."""

    def wait_s(self, samples: int) -> float:
        """How many seconds to wait before so many samples are asked for again. 0: they may land now, and count as
        landed.
        """
        ...


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """Samples that may be sent: `rate` more every second, up to `burst`.

    A chunk is sent whole. One that is larger than what is there, even larger than `burst`, leaves a debt, and the next
    one has to wait until that is paid. So no more than `burst` and one chunk are sent beyond the rate, in any period.
    """

    rate: float
    burst: float
    tokens: float
    at: float
    """The monotonic time that `tokens` is the number of."""

    def __post_init__(self) -> None:
        if not (self.rate > 0 and self.burst >= 0):
            raise ValueError(f"rate = {self.rate} must be positive, and burst = {self.burst} not negative")

    @classmethod
    def full(cls, rate: float, burst: float, now: float) -> "TokenBucket":
        """A bucket that nothing was taken from."""
        return cls(rate, burst, burst, now)

    def filled(self, now: float) -> "TokenBucket":
        """As it is now. A time before the last one changes nothing."""
        passed = max(0.0, now - self.at)
        return replace(self, tokens=min(self.burst, self.tokens + passed * self.rate), at=max(self.at, now))

    def wait(self, now: float) -> float:
        """How many seconds from now on nothing may be taken."""
        return max(0.0, -self.filled(now).tokens / self.rate)

    def taken(self, samples: int, now: float) -> "TokenBucket":
        """With so many samples sent now."""
        filled = self.filled(now)
        return replace(filled, tokens=filled.tokens - samples)


class RateLimit:
    """Lets chunks through at a rate."""

    def __init__(self, rate: float, clock: Clock, *, burst_s: float = 1.0) -> None:
        """What is not used for `burst_s` seconds may be used later."""
        self._clock, self._lock = clock, threading.Lock()
        self._bucket = TokenBucket.full(rate, rate * burst_s, clock.monotonic())

    def wait_s(self, samples: int) -> float:
        with self._lock:
            now = self._clock.monotonic()
            wait = self._bucket.wait(now)
            if wait <= 0:
                self._bucket = self._bucket.taken(samples, now)
            return wait


@dataclass(frozen=True, slots=True)
class Throttles:
    """Several: samples land once none of them holds them back. What one has let through counts there, though another
    holds it back, so the one with the dearest permission comes last.
    """

    each: Sequence[Throttle] = ()

    def wait_s(self, samples: int) -> float:
        for one in self.each:
            wait = one.wait_s(samples)
            if wait > 0:
                return wait
        return 0.0


NO_THROTTLE: Final[Throttle] = Throttles()
