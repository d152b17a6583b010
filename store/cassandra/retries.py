"""Retries with exponential, half-random backoff, until a deadline."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from strandline.clock import Clock
from strandline.store.cassandra.failures import Unanswered
from strandline.store.protocol import StoreUnavailable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to retry, in seconds. The last attempt may begin just before the deadline, and takes up to the request
    timeout.
    """

    deadline: float = 30.0
    min_pause: float = 0.05
    max_pause: float = 2.0


@dataclass(frozen=True, slots=True)
class Retries:
    """Repeats calls without an answer."""

    clock: Clock
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    # Only spreads load, so it need not be unpredictable.
    random: Random = field(default_factory=Random)

    def run(self, call: Callable[[], T]) -> T:
        """Return the result of `call`, which is repeated while it raises `Unanswered`.

        Raises `StoreUnavailable` after the deadline, with the last error.
        """
        begun = self.clock.monotonic()
        pause = self.retry_policy.min_pause
        tries = 1
        while True:
            try:
                return call()
            except Unanswered as error:
                # Half of the delay is random, to separate clients that collide, but never makes it very short.
                waiting = pause * self.random.uniform(0.5, 1.0)
                passed = self.clock.monotonic() - begun
                if passed + waiting > self.retry_policy.deadline:
                    raise StoreUnavailable(
                        f"{error.message} (tried {tries} times in {passed:.1f} s)", remedy=error.remedy
                    ) from error
                self.clock.sleep(waiting)
            pause = min(2 * pause, self.retry_policy.max_pause)
            tries += 1
