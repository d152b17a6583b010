"""The time that has certainly passed, according to a clock of which a single reading may be wrong."""

from typing import Final

WINDOW_S: Final = 60.0


class SettledTime:
    """Takes readings of a wall clock, and accepts a time as passed if all readings for at least a minute are beyond it.

    Readings are grouped into windows of at least a minute by the monotonic clock. The result is the minimum of the
    newest complete window, so wrong readings within one minute have no effect. For one thread at a time.
    """

    def __init__(self) -> None:
        self._began: float | None = None
        self._least = 0
        self._settled: int | None = None

    def observe(self, now_ms: int, monotonic_s: float) -> int | None:
        """Take a reading. Return the time that has certainly passed, in milliseconds; None before two readings a minute
        apart.
        """
        if self._began is None:
            self._began, self._least = monotonic_s, now_ms
            return None
        self._least = min(self._least, now_ms)
        if monotonic_s - self._began >= WINDOW_S:
            self._settled = self._least
            self._began, self._least = monotonic_s, now_ms
        elif self._settled is not None:
            # The clock went back, so its earlier readings are no longer trusted.
            self._settled = min(self._settled, now_ms)
        return self._settled
