"""Which rows may have expired by now: a read that does not find them has found no fault.

A verification reads for minutes or hours while the store removes expired rows. Expiry times are therefore compared with
the time of each read, and nothing that expired meanwhile, or follows from that, is reported as a fault.
"""

from strandline.clock import Clock
from strandline.recovery.checkpoints import EXPIRY_SKEW_MS
from strandline.store.protocol import Store


class ExpiryHorizon:
    """Compares expiry times with the clock that removes rows: that of a server of the store, or the own clock if there
    is none.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        """Reads the store's time once. Raises the store's errors."""
        self._clock = clock
        server = store.server_time()
        self._ahead = 0 if server is None else server - self._monotonic_ms()
        self._is_own = server is None

    def horizon(self) -> int:
        """Rows that expire up to this time may be gone."""
        now = self._clock.now_ms() if self._is_own else self._ahead + self._monotonic_ms()
        return now + EXPIRY_SKEW_MS

    def may_have_expired(self, expires: int) -> bool:
        """Whether a row with this expiry time may be gone."""
        return expires <= self.horizon()

    def _monotonic_ms(self) -> int:
        return int(1000 * self._clock.monotonic())
