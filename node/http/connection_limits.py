"""Limits the number of connections, how long each may be idle, and how slow it may be.

One timer per server checks all connections every second: a timer for each request would cost more than most requests.
"""

import asyncio
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import structlog

log = structlog.get_logger(__name__)

MAX_OVER_LIMIT = 32
"""The number of connections over the limit that may make health checks."""
_OVER_LIMIT_TIMEOUT_S = 5.0


class Awaited(IntEnum):
    """What a connection without a current request waits for. At the limit, connections of the first kind are closed
    first, and among one kind the one that has waited longest.
    """

    FIRST_BYTE = 0
    NEXT_REQUEST = 1
    REST_OF_HEAD = 2


# The shortest wait before a connection is closed for another. A client that has just connected or was just answered is
# likely to send a request; one that has started to send needs longer.
_MIN_WAIT_S = {Awaited.FIRST_BYTE: 1.0, Awaited.NEXT_REQUEST: 1.0, Awaited.REST_OF_HEAD: 5.0}


@dataclass(frozen=True, slots=True, order=True)
class Waiting:
    """What a connection waits for, and since when."""

    awaited: Awaited
    since: float

    def may_be_evicted(self, now: float) -> bool:
        """Whether it has waited long enough to be closed for another client."""
        return now - self.since >= _MIN_WAIT_S[self.awaited]


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """At most `connections` at a time. A client has `request_timeout_s` to send a request, and may be idle for as long.
    While it sends or receives a body, its rate must be `min_rate` bytes per second, measured over `rate_window_s`. The
    limits are checked every `check_interval_s`.
    """

    connections: int
    request_timeout_s: float
    min_rate: int
    rate_window_s: float = 10.0
    check_interval_s: float = 1.0


class LimitedConnection(Protocol):
    """A connection with limits: `Connection`."""

    @property
    def waiting(self) -> Waiting | None:
        """What it waits for; None while it has a request, or is being closed."""
        ...

    @property
    def is_waiting_for_first_request(self) -> bool: ...

    def check_limits(self, now: float) -> None:
        """Enforce the limits."""
        ...

    def close(self) -> None:
        """Close it after sending what was written."""
        ...

    def stop(self) -> None:
        """Accept no more requests."""
        ...

    def abort(self) -> None:
        """Close it at once."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered, or an answer is not sent completely."""
        ...


class OpenConnections:
    """The connections of a server. For one event loop."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._within_limit: dict[LimitedConnection, None] = {}
        self._over_limit: dict[LimitedConnection, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._warned = False

    def __len__(self) -> int:
        return len(self._within_limit) + len(self._over_limit)

    def all(self) -> tuple[LimitedConnection, ...]:
        """The current connections, oldest first."""
        return (*self._within_limit, *self._over_limit)

    def admit(self, connection: LimitedConnection) -> bool:
        """Add a new connection. Returns whether it is within the limit, for which a waiting connection may be closed. A
        connection over the limit may only make a health check.
        """
        self._start_timer()
        if len(self._within_limit) < self.limits.connections or self._evict_waiting():
            self._within_limit[connection] = None
            return True
        if not self._warned:
            self._warned = True
            log.warning("connection limit reached", limit=self.limits.connections)
        if len(self._over_limit) >= MAX_OVER_LIMIT:
            self._evict_over_limit()
        self._over_limit[connection] = None
        return False

    def forget(self, connection: LimitedConnection) -> None:
        """Remove a closed connection."""
        self._within_limit.pop(connection, None)
        self._over_limit.pop(connection, None)

    def over_limit_deadline(self, now: float) -> float:
        """The time until which a connection over the limit must send its request."""
        return now + min(_OVER_LIMIT_TIMEOUT_S, self.limits.request_timeout_s)

    def stop(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _evict_waiting(self) -> bool:
        """Close the waiting connection that comes first in the order of `Waiting`, if there is one."""
        now = asyncio.get_running_loop().time()
        found = [
            (waiting, index, one)
            for index, one in enumerate(self._within_limit)
            if (waiting := one.waiting) is not None and waiting.may_be_evicted(now)
        ]
        if not found:
            return False
        _, _, first = min(found)
        self._within_limit.pop(first)
        first.close()
        return True

    def _evict_over_limit(self) -> None:
        """Close a connection over the limit that has not sent a request yet, for a newer one."""
        for candidate in tuple(self._over_limit):
            if candidate.is_waiting_for_first_request:
                self._over_limit.pop(candidate)
                candidate.close()
                return

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.limits.check_interval_s, self._check_all)

    def _check_all(self) -> None:
        self._timer, self._warned = None, False
        now = asyncio.get_running_loop().time()
        for connection in self.all():
            connection.check_limits(now)
        if len(self):
            self._start_timer()
