"""Throttles log lines about conditions that may last for hours and would be logged for every request."""

from strandline.clock import Clock

_INTERVAL_S = 60.0


class Throttle:
    """Allows something immediately, and then at most once a minute."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = float("-inf")

    def is_due(self) -> bool:
        """Whether it is allowed now. If so, the interval begins again."""
        now = self._clock.monotonic()
        if now - self._last < _INTERVAL_S:
            return False
        self._last = now
        return True
