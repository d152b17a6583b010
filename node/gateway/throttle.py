"""Log lines about what may go on for hours, and happens with every request."""

from strandline.clock import Clock

_INTERVAL_S = 60.0


class Throttle:
    """Lets something happen at once, and then at most once a minute."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = float("-inf")

    def is_due(self) -> bool:
        """Whether it may happen now; asking counts as doing it."""
        now = self._clock.monotonic()
        if now - self._last < _INTERVAL_S:
            return False
        self._last = now
        return True
