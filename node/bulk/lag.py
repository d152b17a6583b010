"""Pauses imports and sends while shards are behind, because landing more records would increase the lag.

A shard's lag is how long unread records may have waited in Kafka. The node reports it. The committed offsets of
consumer groups are not usable: those of `strandline-<dataset>` follow the checkpoints, which move with each flush, so
that records that were read count as unread for up to a flush interval.

The lag alone reacts too late if a job lands faster than a shard reads, for example with new series: when it reaches the
limit, the backlog is already so large that it keeps rising. Therefore the time that the shard needs for its backlog
counts, too. It is estimated from the shard's speed since it was behind.
"""

import threading
from collections import deque
from typing import Final, Protocol

import structlog

from strandline.clock import Clock
from strandline.errors import StrandlineError
from strandline.node.client.answers import ShardLag

_LOG = structlog.get_logger(__name__)
# A shard reports its lag twice a second.
_POLL_INTERVAL_S = 1.0
# The interval while the node does not answer.
_RETRY_S = 15.0
# A shorter window gives no reliable speed.
_MIN_WINDOW_S, _WINDOW_S = 2.0, 20.0
MAX_BACKLOG_SHARE: Final = 1 / 3
"""Nothing lands while a shard would take more than this share of the limit for its backlog. The rest of the limit is
for what lands before the backlog is known: a shard reads the end of the log every five seconds.
"""


class ShardLags(Protocol):
    """Reads the shards' lags from a node."""

    def shard_lags(self) -> list[ShardLag]:
        """The lags of the node's shards."""
        ...


class ReadingSpeed:
    """How fast a shard reads while it is behind."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()
        self._unread = self._end = 0

    def left_s(self, lag: ShardLag, now: float) -> float:
        """How long the shard will take for its backlog; 0 if unknown."""
        if not lag.unread or lag.position is None or (self._seen and lag.position < self._seen[-1][1]):
            self._seen.clear()
            self._unread = 0
            return 0.0
        if lag.unread != self._unread:
            # The backlog as of the shard's last request to the brokers. It has read more since then.
            self._unread, self._end = lag.unread, lag.position + lag.unread
        self._seen.append((now, lag.position))
        while now - self._seen[0][0] > _WINDOW_S:
            self._seen.popleft()
        began, first = self._seen[0]
        read, left = lag.position - first, max(0, self._end - lag.position)
        return left * (now - began) / read if read and now - began >= _MIN_WINDOW_S else 0.0


class LagLimit:
    """The `Throttle` that stops landing while a shard's lag is above a limit, or is going to be. It does not throttle
    while no node answers, because then no shard reads; it logs a warning if a node is expected or has answered before.
    """

    def __init__(self, node: ShardLags, max_lag_s: float, clock: Clock, *, is_expected: bool = True) -> None:
        self._node, self._max_lag_s, self._clock = node, max_lag_s, clock
        self._is_expected = is_expected
        self._lock = threading.Lock()
        self._next_poll = clock.monotonic()
        self._is_behind, self._is_warned = False, False
        self._speeds: dict[int, ReadingSpeed] = {}

    def wait_s(self, samples: int) -> float:  # noqa: ARG002 - a limit for any number
        with self._lock:
            if self._clock.monotonic() >= self._next_poll:
                self._poll()
            return _POLL_INTERVAL_S if self._is_behind else 0.0

    def _poll(self) -> None:
        pause, lag, left, now = _POLL_INTERVAL_S, 0.0, 0.0, self._clock.monotonic()
        try:
            lags = self._node.shard_lags()
        except StrandlineError as error:
            pause = _RETRY_S
            if self._is_expected and not self._is_warned:
                _LOG.warning("no node reports the shards' lag: jobs are not throttled by it", error=str(error))
                self._is_warned = True
        else:
            self._is_expected, self._is_warned = True, False
            lag = max((one.lag_s or 0.0 for one in lags), default=0.0)
            left = max(
                (self._speeds.setdefault(one.shard, ReadingSpeed()).left_s(one, now) for one in lags), default=0.0
            )
        is_behind = lag > self._max_lag_s or left > MAX_BACKLOG_SHARE * self._max_lag_s
        if is_behind != self._is_behind:
            message = "jobs wait for the shards" if is_behind else "jobs continue"
            _LOG.info(message, lag_s=lag, left_s=left, max_lag_s=self._max_lag_s)
        self._is_behind = is_behind
        self._next_poll = self._clock.monotonic() + pause
