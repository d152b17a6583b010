"""Rate limits: a token bucket as a value, and throttles that return how long to wait.

The rate of a job is in its spec and limits all of its workers together: each takes an equal share. A worker may have
its own limit in addition. A part requests permission from its worker before each chunk, wherever it runs, and waits
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
"""The key of the rate in the spec of a job of any kind. The outcome of a job does not depend on it."""


def rate_of(job: BulkJob) -> float | None:
    """How many samples or messages per second all workers of a job may land together; None without a limit."""
    spec: dict[str, Any] = orjson.loads(job.spec or "{}")
    return spec.get(RATE)


def with_rate(spec: str, rate: float | None) -> str:
    """The spec with another rate."""
    kept = {name: value for name, value in orjson.loads(spec).items() if name != RATE}
    return orjson.dumps(kept if rate is None else kept | {RATE: rate}, option=orjson.OPT_SORT_KEYS).decode()


def changed_rate(job: BulkJob, rate: float | None) -> BulkJob:
    """The job with another rate."""
    if rate_of(job) == rate:
        return job
    return replace(job, spec=with_rate(job.spec, rate), version=job.version + 1)


def share_of(rate: float, parts: Sequence[BulkPart], worker: str) -> float:
    """A worker's share of the rate of a job: equal shares for all workers that have leased parts of it."""
    return rate / len({worker} | {part.worker for part in parts if part.state is JobState.LEASED})


class Throttle(Protocol):
    """Delays samples before they land. Thread-safe."""

    def wait_s(self, samples: int) -> float:
        """How many seconds to wait before requesting permission for these samples again. 0 grants it: the samples count
        as landed.
        """
        ...


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """A token bucket: `rate` tokens per second are added, up to `burst`. A sample takes one token.

    A chunk is not divided. One that is larger than the available tokens, or than `burst`, makes them negative, and the
    next chunk waits until they are not. In any period, at most `burst` and one chunk are sent in excess of the rate.
    """

    rate: float
    burst: float
    tokens: float
    at: float
    """The monotonic time at which there were `tokens`."""

    def __post_init__(self) -> None:
        if not (self.rate > 0 and self.burst >= 0):
            raise ValueError(f"rate = {self.rate} must be positive, and burst = {self.burst} not negative")

    @classmethod
    def full(cls, rate: float, burst: float, now: float) -> "TokenBucket":
        """A full bucket."""
        return cls(rate, burst, burst, now)

    def filled(self, now: float) -> "TokenBucket":
        """The bucket now. A time before the last one changes nothing."""
        passed = max(0.0, now - self.at)
        return replace(self, tokens=min(self.burst, self.tokens + passed * self.rate), at=max(self.at, now))

    def at_rate(self, rate: float, burst: float, now: float) -> "TokenBucket":
        """The bucket with another rate. Negative tokens are kept."""
        filled = self.filled(now)
        return replace(filled, rate=rate, burst=burst, tokens=min(burst, filled.tokens))

    def wait(self, now: float) -> float:
        """How many seconds from now no tokens may be taken."""
        return max(0.0, -self.filled(now).tokens / self.rate)

    def taken(self, samples: int, now: float) -> "TokenBucket":
        """The bucket after sending samples."""
        filled = self.filled(now)
        return replace(filled, tokens=filled.tokens - samples)


class RateLimit:
    """A `Throttle` with a rate that can be changed."""

    def __init__(self, rate: float, clock: Clock, *, burst_s: float = 1.0) -> None:
        """Unused permission is kept for `burst_s` seconds."""
        self._clock, self._lock, self._burst_s = clock, threading.Lock(), burst_s
        self._bucket = TokenBucket.full(rate, rate * burst_s, clock.monotonic())

    def change(self, rate: float) -> None:
        """Continue at another rate."""
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
    """Several throttles in sequence: samples land once all of them permit it. A permission is used up even if a later
    throttle delays the samples, so the order should end with the throttle whose permissions are most valuable.
    """

    each: Sequence[Throttle] = ()

    def wait_s(self, samples: int) -> float:
        for one in self.each:
            wait = one.wait_s(samples)
            if wait > 0:
                return wait
        return 0.0


class JobRates:
    """The rate limits of one worker by job: its share of the job's rate, and its own limit. Thread-safe, except that
    only one thread may call `update`.
    """

    def __init__(self, worker: str, clock: Clock, own: float | None = None) -> None:
        self._worker, self._clock, self._own = worker, clock, own
        self._limits: dict[str, RateLimit] = {}

    def update(self, job: BulkJob, parts: Sequence[BulkPart]) -> None:
        """Set the limit by the current rows of a job and its parts."""
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
        """As `Throttle.wait_s`, for a part of this job."""
        limit = self._limits.get(job)
        return 0.0 if limit is None else limit.wait_s(samples)


NO_THROTTLE: Final[Throttle] = Throttles()
