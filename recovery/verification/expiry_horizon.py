"""What may have left the store by now: a look that finds it gone has found nothing wrong.

A verification reads for minutes or hours, and the store goes on removing what has lived its life. So dates are compared
with the time of each look, and nothing that has left meanwhile, or follows from it, is called a fault.
"""

from strandline.clock import Clock
from strandline.recovery.checkpoints import EXPIRY_SKEW_MS
from strandline.store.protocol import Store


class ExpiryHorizon:
    """Compares dates with the clock that removes rows: a server's of the store, or the own one where there is none."""

    def __init__(self, store: Store, clock: Clock) -> None:
        """Asks the store for its time, once. Raises what the store raises."""
        self._clock = clock
        server = store.server_time()
        self._ahead = 0 if server is None else server - self._monotonic_ms()
        self._is_own = server is None

    def horizon(self) -> int:
        """Whatever expires up to this time may be gone."""
        now = self._clock.now_ms() if self._is_own else self._ahead + self._monotonic_ms()
        return now + EXPIRY_SKEW_MS

    def may_have_expired(self, expires: int) -> bool:
        """Whether what has this date may be gone."""
        return expires <= self.horizon()

    def _monotonic_ms(self) -> int:
        return int(1000 * self._clock.monotonic())
