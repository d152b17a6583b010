"""A warning about a condition that may last for hours: logged at once, and then once per minute."""

import structlog

from strandline.clock import Clock
from strandline.errors import StrandlineError

_LOG = structlog.get_logger(__name__)
_REPEAT_S = 60.0


class ThrottledWarning:
    """The warning about one condition of one shard."""

    def __init__(self, what: str, shard: str, clock: Clock) -> None:
        self._what, self._shard, self._clock = what, shard, clock
        self._logged_at: float | None = None

    def about(self, error: StrandlineError) -> None:
        """The condition exists, because of this error."""
        now = self._clock.monotonic()
        if self._logged_at is None or now - self._logged_at >= _REPEAT_S:
            self._logged_at = now
            _LOG.warning(self._what, shard=self._shard, error=str(error))

    def is_over(self) -> None:
        """The condition is over. The next one is logged at once."""
        self._logged_at = None
