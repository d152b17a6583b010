"""Holds an import or a send back while shards are behind: what lands meanwhile would only make them later.

A shard's lag is for how long records may have waited in Kafka that it has not read. The node reports it. Offsets that
consumer groups commit would not do: those of `strandline-<dataset>` follow the checkpoints, which move with each flush,
so records that were read long ago count as unread for up to a flush interval.
"""

import threading
from typing import Protocol

import structlog

from strandline.clock import Clock
from strandline.errors import StrandlineError

_LOG = structlog.get_logger(__name__)
# A shard reports its lag twice a second.
_LOOK_EVERY_S = 1.0
# A node that does not answer is asked less often.
_RETRY_S = 15.0


class ShardLags(Protocol):
    """Asks a node."""

    def shard_lags_s(self) -> list[float]:
        """The lags of its shards that are known, in seconds."""
        ...


class LagLimit:
    """The `Throttle` that lets nothing land while a shard's lag is above a limit. Where no node answers nobody reads,
    and nothing is held back; a warning says so if a node is expected there, or was there before.
    """

    def __init__(self, node: ShardLags, most_s: float, clock: Clock, *, is_expected: bool = True) -> None:
        self._node, self._most_s, self._clock = node, most_s, clock
        self._is_expected = is_expected
        self._lock = threading.Lock()
        self._look_at = clock.monotonic()
        self._is_behind, self._is_warned = False, False

    def wait_s(self, samples: int) -> float:  # noqa: ARG002 - a limit for any number
        with self._lock:
            if self._clock.monotonic() >= self._look_at:
                self._look()
            return _LOOK_EVERY_S if self._is_behind else 0.0

    def _look(self) -> None:
        pause = _LOOK_EVERY_S
        try:
            lag = max(self._node.shard_lags_s(), default=0.0)
        except StrandlineError as error:
            lag, pause = 0.0, _RETRY_S
            if self._is_expected and not self._is_warned:
                _LOG.warning("no node tells the shards' lag: nothing waits for them", error=str(error))
                self._is_warned = True
        else:
            self._is_expected, self._is_warned = True, False
        is_behind = lag > self._most_s
        if is_behind != self._is_behind:
            _LOG.info("jobs wait for the shards" if is_behind else "jobs go on", lag_s=lag, max_lag_s=self._most_s)
        self._is_behind = is_behind
        self._look_at = self._clock.monotonic() + pause
