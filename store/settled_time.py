"""The time that has surely passed, by a clock of which a single reading may be wrong."""

from typing import Final

WINDOW_S: Final = 60.0


class SettledTime:
    """Hears readings of a wall clock, and believes what all of them had passed for at least a minute.

    Readings are taken in windows that last a minute or more by the monotonic clock. What counts is the least reading of
    the newest whole window: so one wrong reading, or some within a minute, settle nothing. One thread at a time.
    """

    def __init__(self) -> None:
        self._began: float | None = None
        self._least = 0
        self._settled: int | None = None

    def observe(self, now_ms: int, monotonic_s: float) -> int | None:
        """Hear a reading. The time that has surely passed, in milliseconds; None before two looks a minute apart."""
        if self._began is None:
            self._began, self._least = monotonic_s, now_ms
            return None
        self._least = min(self._least, now_ms)
        if monotonic_s - self._began >= WINDOW_S:
            self._settled = self._least
            self._began, self._least = monotonic_s, now_ms
        elif self._settled is not None:
            # The clock went back: what it said before is no longer believed.
            self._settled = min(self._settled, now_ms)
        return self._settled
