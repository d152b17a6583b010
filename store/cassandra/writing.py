"""Writing many rows: several at once, not more than fit, and to_resend those that were not answered.

How much is under way is bounded for a whole store, by bytes and by number, whichever thread it came from: the servers
hold back a client that sends more, and what is sent must be kept until it is acknowledged.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from cassandra.query import BoundStatement

from strandline.store.cassandra.failures import Unanswered
from strandline.store.cassandra.requests import Requests
from strandline.store.protocol import StoreRefused

MAX_BYTES_IN_FLIGHT: Final = 4 * 2**20
MAX_WRITES_IN_FLIGHT: Final = 64


@dataclass(frozen=True, slots=True)
class RowWrite:
    """One row on its way."""

    statement: BoundStatement
    size: int


class InFlightLimit:
    """What may be under way at once."""

    def __init__(self, max_bytes: int = MAX_BYTES_IN_FLIGHT, max_writes: int = MAX_WRITES_IN_FLIGHT) -> None:
        self._max_bytes = max_bytes
        self._max_writes = max_writes
        self._bytes = 0
        self._writes = 0
        self._changed = threading.Condition()

    def acquire(self, size: int) -> None:
        """Wait until there is limit. A row that is larger than all of it goes alone."""
        with self._changed:
            self._changed.wait_for(lambda: self._fits(size))
            self._bytes += size
            self._writes += 1

    def release(self, size: int) -> None:
        """Make limit to_resend."""
        with self._changed:
            self._bytes -= size
            self._writes -= 1
            # All: whoever is woken may have a row that still does not fit, when another's would.
            self._changed.notify_all()

    def _fits(self, size: int) -> bool:
        return self._writes == 0 or (self._writes < self._max_writes and self._bytes + size <= self._max_bytes)


@dataclass(slots=True)
class _InFlightWrites:
    """The writes of one call: how many are under way, which came to nothing, and which are to be sent to_resend."""

    requests: Requests
    limit: InFlightLimit
    what: str
    in_flight: int = 0
    failed: list[tuple[RowWrite, Exception]] = field(default_factory=list)
    to_resend: list[RowWrite] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def send(self, write: RowWrite) -> None:
        """Send a write as soon as there is limit for it."""
        self.limit.acquire(write.size)
        with self.changed:
            self.in_flight += 1
        try:
            self.requests.write(
                self.what, write.statement, lambda _: self._answered(write), lambda error: self._answered(write, error)
            )
        except (Unanswered, StoreRefused) as error:
            self._answered(write, error)

    def finish(self) -> None:
        """Send what is to be sent to_resend, and wait for all that is under way. Raises what it came to, if it came to
        nothing: after `Unanswered` this may be called to_resend.
        """
        to_resend, self.to_resend = self.to_resend, []
        for write in to_resend:
            self.send(write)
        with self.changed:
            self.changed.wait_for(lambda: self.in_flight == 0)
        failed, self.failed = self.failed, []
        if failed:
            self.to_resend = [write for write, _ in failed]
            # A refusal is final, so it goes before all others.
            raise next((error for _, error in failed if not isinstance(error, Unanswered)), failed[0][1])

    def _answered(self, write: RowWrite, error: Exception | None = None) -> None:
        self.limit.release(write.size)
        with self.changed:
            self.in_flight -= 1
            if error is not None:
                self.failed.append((write, error))
            self.changed.notify_all()


def write_all(requests: Requests, limit: InFlightLimit, what: str, writes: Iterable[RowWrite]) -> int:
    """Write rows; all are there when this returns. How many there were.

    Raises `StoreUnavailable` if some were not answered for longer than retry_policy allows; the others may be there.
    """
    writes_in_flight = _InFlightWrites(requests, limit, what)
    count = 0
    for write in writes:
        writes_in_flight.send(write)
        count += 1
        # Rows that can't be written now are not heaped up behind those that could not.
        if writes_in_flight.failed:
            requests.retries.run(writes_in_flight.finish)
    requests.retries.run(writes_in_flight.finish)
    return count
