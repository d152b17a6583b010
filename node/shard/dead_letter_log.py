"""Log lines about records that could not be decoded: the first at once, then one a minute for all since."""

import structlog

from strandline.clock import Clock
from strandline.store.rows import ShardId

_LOG = structlog.get_logger(__name__)
_EVERY_S = 60.0


class DeadLetterLog:
    """Counts the dead letters of one shard between two log lines."""

    def __init__(self) -> None:
        self._count = 0
        self._newest: tuple[int, str] = (0, "")
        self._logged: float | None = None

    def add(self, offset: int, reason: str) -> None:
        """A record could not be decoded."""
        self._count += 1
        self._newest = (offset, reason)

    def log_if_due(self, shard: ShardId, clock: Clock) -> None:
        """Log the number of dead letters since the last line, with the offset and reason of the newest. Call it after
        each batch of records, so that the last dead letters are logged too.
        """
        now = clock.monotonic()
        if self._count and (self._logged is None or now - self._logged >= _EVERY_S):
            offset, reason = self._newest
            _LOG.warning(
                "records could not be decoded and were sent to the dead-letter topic",
                shard=str(shard),
                records=self._count,
                newest_offset=offset,
                newest_reason=reason,
            )
            self._count, self._logged = 0, now
