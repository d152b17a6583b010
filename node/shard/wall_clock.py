"""Whether the wall clock can be believed right now.

A bucket that no record closes is closed by the clock, and keys that then have no sample in it end, and go. So a clock
that leaps ahead, for a moment or because somebody has set it, must not be believed at once: one wrong reading would
close every bucket up to it.
"""

import structlog

from strandline.clock import Clock

# For so long it must go on from where it leapt to.
_SETTLED_S = 600.0
_ORDINARY_MS = 60_000
_LOG = structlog.get_logger(__name__)


class WallClock:
    """Compares the wall clock with the one that never leaps. A leap by more than a bucket's time, and more than a
    minute, is not believed until it has lasted for ten. (A machine that was asleep looks the same, and wakes for ten
    minutes without such cuts.)
    """

    def __init__(self, clock: Clock, flush_interval: int) -> None:
        self._clock = clock
        # Below a minute it may be a virtual machine that was held, or a clock that was corrected.
        self._most_ms = max(flush_interval, _ORDINARY_MS)
        self._offset = self._current_offset()
        self._distrusted_since: float | None = None

    def is_trusted(self) -> bool:
        """Whether what it says now follows from what it said before."""
        offset, now = self._current_offset(), self._clock.monotonic()
        if abs(offset - self._offset) > self._most_ms:
            _LOG.warning("the wall clock has leapt, and closes no bucket for a while", by_ms=offset - self._offset)
            self._distrusted_since = now
        self._offset = offset
        if self._distrusted_since is not None and now - self._distrusted_since >= _SETTLED_S:
            self._distrusted_since = None
        return self._distrusted_since is None

    def _current_offset(self) -> int:
        return self._clock.now_ms() - int(self._clock.monotonic() * 1000)
