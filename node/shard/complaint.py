"""Saying that something is wrong which may last for hours: once at first, and then once a minute."""

import structlog

from strandline.clock import Clock
from strandline.errors import StrandlineError

_LOG = structlog.get_logger(__name__)
_AGAIN_S = 60.0


class Complaint:
    """One thing that may be wrong, of one shard."""

    def __init__(self, what: str, shard: str, clock: Clock) -> None:
        self._what, self._shard, self._clock = what, shard, clock
        self._said: float | None = None

    def about(self, error: StrandlineError) -> None:
        """It is wrong, still or again."""
        now = self._clock.monotonic()
        if self._said is None or now - self._said >= _AGAIN_S:
            self._said = now
            _LOG.warning(self._what, shard=self._shard, error=str(error))

    def is_over(self) -> None:
        """It is right: the next time is a first one."""
        self._said = None
