"""Trying again: with growing pauses of random length, until a deadline."""

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
    """For how long something is tried, in seconds. The last try may begin just before the deadline, and takes as long
    as a request may.
    """

    deadline: float = 30.0
    min_pause: float = 0.05
    max_pause: float = 2.0


@dataclass(frozen=True, slots=True)
class Retries:
    """Repeats calls that were not answered."""

    clock: Clock
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    # Spreads those who were disturbed by the same thing; nobody has to guess it.
    random: Random = field(default_factory=Random)

    def run(self, call: Callable[[], T]) -> T:
        """What `call` gives, as soon as it gives something. It is repeated while it raises `Unanswered`.

        Raises `StoreUnavailable` once the deadline has passed, with what the last try met.
        """
        begun = self.clock.monotonic()
        pause = self.retry_policy.min_pause
        tries = 1
        while True:
            try:
                return call()
            except Unanswered as error:
                # Half of it random: enough to part two who collide, and never hardly any pause.
                waiting = pause * self.random.uniform(0.5, 1.0)
                passed = self.clock.monotonic() - begun
                if passed + waiting > self.retry_policy.deadline:
                    raise StoreUnavailable(
                        f"{error.message} (tried {tries} times in {passed:.1f} s)", remedy=error.remedy
                    ) from error
                self.clock.sleep(waiting)
            pause = min(2 * pause, self.retry_policy.max_pause)
            tries += 1
