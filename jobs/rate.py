"""The rate of a job: a token bucket as a value, and a limit that waits on a clock.

`--rate` bounds the samples a second of all executors together. The driver gives each part of a wave an equal share, and
a part waits before it opens a transaction, never within one.
"""

from dataclasses import dataclass, replace

from strandline.clock import Clock


def share_of(rate: float, parts: int) -> float:
    """What each of the parts that run at once may send a second."""
    if parts < 1:
        raise ValueError(f"a rate can't be shared among {parts} parts")
    return rate / parts


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
    """Lets chunks through at a rate; for one thread."""

    def __init__(self, rate: float | None, clock: Clock, *, burst_s: float = 1.0) -> None:
        """None for no limit. What is not used for `burst_s` seconds may be used later."""
        self._clock = clock
        self._bucket = TokenBucket.full(rate, rate * burst_s, clock.monotonic()) if rate is not None else None

    def acquire(self, samples: int, until: float) -> bool:
        """Wait until so many samples may be sent. False, at once, if that is not before `until` on the monotonic clock:
        nothing counts as sent then.
        """
        if self._bucket is None:
            return True
        now = self._clock.monotonic()
        wait = self._bucket.wait(now)
        if now + wait >= until:
            return False
        self._clock.sleep(wait)
        self._bucket = self._bucket.taken(samples, self._clock.monotonic())
        return True
