"""How many connections there may be, how long each may be idle, and how slow.

One timer a server looks at all connections every second: a timer for each request would cost more than most requests.
"""

import asyncio
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import structlog

log = structlog.get_logger(__name__)

GUESTS = 32
"""So many connections beyond the limit may make health checks."""
_GUEST_S = 5.0


class Awaited(IntEnum):
    """What a connection waits for that has no request to work on. When connections run out, those of the first kind
    make room first, and of one kind the one that has waited longest.
    """

    FIRST_BYTE = 0
    NEXT_REQUEST = 1
    REST_OF_HEAD = 2


# A client that has just connected, or was just answered, is likely to send something; one that has begun needs longer.
_LEFT_ALONE_S = {Awaited.FIRST_BYTE: 1.0, Awaited.NEXT_REQUEST: 1.0, Awaited.REST_OF_HEAD: 5.0}


@dataclass(frozen=True, slots=True, order=True)
class Waiting:
    """What a connection waits for, and since when."""

    awaited: Awaited
    since: float

    def may_be_evicted(self, now: float) -> bool:
        """Whether it has waited for long enough to make room for another client."""
        return now - self.since >= _LEFT_ALONE_S[self.awaited]


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """`connections` at a time. A client has `request_timeout_s` to send a request, and may be idle for as long. While
    it sends or takes a body it has to do `min_rate` bytes a second, measured over `rate_window_s`. The limits are
    enforced every `look_s`.
    """

    connections: int
    request_timeout_s: float
    min_rate: int
    rate_window_s: float = 10.0
    look_s: float = 1.0


class LimitedConnection(Protocol):
    """What is limited: `Connection`."""

    @property
    def waiting(self) -> Waiting | None:
        """What it waits for; None while it has a request to work on, or is being closed."""
        ...

    @property
    def is_waiting_for_first_request(self) -> bool: ...

    def look(self, now: float) -> None:
        """Hold the client to the limits."""
        ...

    def close(self) -> None:
        """Close it once its client has taken what was written."""
        ...

    def stop(self) -> None:
        """Take no more requests."""
        ...

    def abort(self) -> None:
        """Cut the client off."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered, or an answer not taken yet."""
        ...


class OpenConnections:
    """The connections of a server. It belongs to one event loop."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._members: dict[LimitedConnection, None] = {}
        self._guests: dict[LimitedConnection, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._has_warned = False

    def __len__(self) -> int:
        return len(self._members) + len(self._guests)

    def all(self) -> tuple[LimitedConnection, ...]:
        """As of now, oldest first."""
        return (*self._members, *self._guests)

    def admit(self, connection: LimitedConnection) -> bool:
        """A new connection; whether it counts as one of the allowed ones, for which one that waits may have to go.
        One that does not is a guest, which may only make a health check.
        """
        self._start_timer()
        if len(self._members) < self.limits.connections or self._evict_waiting():
            self._members[connection] = None
            return True
        if not self._has_warned:
            self._has_warned = True
            log.warning("connection limit reached", limit=self.limits.connections)
        if len(self._guests) >= GUESTS:
            self._evict_guest()
        self._guests[connection] = None
        return False

    def forget(self, connection: LimitedConnection) -> None:
        """It is closed."""
        self._members.pop(connection, None)
        self._guests.pop(connection, None)

    def guest_deadline(self, now: float) -> float:
        """Until when a guest has to ask."""
        return now + min(_GUEST_S, self.limits.request_timeout_s)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _evict_waiting(self) -> bool:
        """Close the connection that has the least to lose, if there is one that only waits."""
        now = asyncio.get_running_loop().time()
        found = [
            (waiting, place, one)
            for place, one in enumerate(self._members)
            if (waiting := one.waiting) is not None and waiting.may_be_evicted(now)
        ]
        if not found:
            return False
        _, _, first = min(found)
        self._members.pop(first)
        first.close()
        return True

    def _evict_guest(self) -> None:
        """Make room for a newer guest: one that has asked nothing so far goes first."""
        for guest in tuple(self._guests):
            if guest.is_waiting_for_first_request:
                self._guests.pop(guest)
                guest.close()
                return

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.limits.look_s, self._look)

    def _look(self) -> None:
        self._timer, self._has_warned = None, False
        now = asyncio.get_running_loop().time()
        for connection in self.all():
            connection.look(now)
        if len(self):
            self._start_timer()
