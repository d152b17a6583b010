"""The rate of a job: a token bucket as a value, and limits that say how long to wait.

A job's own rate stands in its spec and bounds all of its workers together: each takes an equal share. A worker may have
a limit of its own beside that. Wherever a worker's parts run, each asks the worker before a chunk lands. A part waits
before it opens a transaction, never within one.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import orjson

from strandline.clock import Clock
from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.store.jobs import JobState

RATE: Final = "rate"
"""Where the rate stands in the spec of a job of any kind. What comes of a job does not depend on it."""


def rate_of(job: BulkJob) -> float | None:
    """The samples or messages a second that all workers of a job may land together; None if there is no limit."""
    spec: dict[str, Any] = orjson.loads(job.spec or "{}")
    return spec.get(RATE)


def with_rate(spec: str, rate: float | None) -> str:
    """The spec of a job with another rate."""
    kept = {name: value for name, value in orjson.loads(spec).items() if name != RATE}
    return orjson.dumps(kept if rate is None else kept | {RATE: rate}, option=orjson.OPT_SORT_KEYS).decode()


def changed_rate(job: BulkJob, rate: float | None) -> BulkJob:
    """A job with another rate from now on."""
    if rate_of(job) == rate:
        return job
    return replace(job, spec=with_rate(job.spec, rate), version=job.version + 1)


def share_of(rate: float, parts: Sequence[BulkPart], worker: str) -> float:
    """What a worker may use of a job's rate: as much as each other one that has parts of the job."""
    return rate / len({worker} | {part.worker for part in parts if part.state is JobState.LEASED})


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

    def at_rate(self, rate: float, burst: float, now: float) -> "TokenBucket":
        """With another rate from now on. What was sent beyond the rate is still to be waited for."""
        filled = self.filled(now)
        return replace(filled, rate=rate, burst=burst, tokens=min(burst, filled.tokens))

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
        self._clock, self._lock, self._burst_s = clock, threading.Lock(), burst_s
        self._bucket = TokenBucket.full(rate, rate * burst_s, clock.monotonic())

    def change(self, rate: float) -> None:
        """Go on at another rate."""
        with self._lock:
            if rate != self._bucket.rate:
                self._bucket = self._bucket.at_rate(rate, rate * self._burst_s, self._clock.monotonic())

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


class JobRates:
    """How fast one worker lands parts of its jobs: by its shares of their rates, and by a limit of its own. May be used
    by several threads; `update` by one.
    """

    def __init__(self, worker: str, clock: Clock, own: float | None = None) -> None:
        self._worker, self._clock, self._own = worker, clock, own
        self._limits: dict[str, RateLimit] = {}

    def update(self, job: BulkJob, parts: Sequence[BulkPart]) -> None:
        """A job and its parts, as they are in the store."""
        rate = rate_of(job)
        limits = [] if rate is None else [share_of(rate, parts, self._worker)]
        limits += [] if self._own is None else [self._own]
        if not limits:
            self._limits.pop(job.job, None)
        elif job.job in self._limits:
            self._limits[job.job].change(min(limits))
        else:
            self._limits[job.job] = RateLimit(min(limits), self._clock)

    def wait_s(self, job: str, samples: int) -> float:
        """As a `Throttle`, for a part of this job."""
        limit = self._limits.get(job)
        return 0.0 if limit is None else limit.wait_s(samples)


NO_THROTTLE: Final[Throttle] = Throttles()
