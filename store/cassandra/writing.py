"""Writes many rows concurrently, with a limit on what is in flight, and resends those without an answer.

The limit is for the whole store, in bytes and in writes, all threads together: servers throttle a client that exceeds
it, and requests stay in memory until they are acknowledged.
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
    """One row to write."""

    statement: BoundStatement
    size: int


class InFlightLimit:
    """A limit on what is in flight at the same time."""

    def __init__(self, max_bytes: int = MAX_BYTES_IN_FLIGHT, max_writes: int = MAX_WRITES_IN_FLIGHT) -> None:
        self._max_bytes = max_bytes
        self._max_writes = max_writes
        self._bytes = 0
        self._writes = 0
        self._changed = threading.Condition()

    def acquire(self, size: int) -> None:
        """Wait until the limit permits a write of this size. A row above the limit is sent alone."""
        with self._changed:
            self._changed.wait_for(lambda: self._fits(size))
            self._bytes += size
            self._writes += 1

    def release(self, size: int) -> None:
        """Return what a finished write had acquired."""
        with self._changed:
            self._bytes -= size
            self._writes -= 1
            # Notify all: the row of one waiting thread may still not fit while another's does.
            self._changed.notify_all()

    def _fits(self, size: int) -> bool:
        return self._writes == 0 or (self._writes < self._max_writes and self._bytes + size <= self._max_bytes)


@dataclass(slots=True)
class _InFlightWrites:
    """The writes of one call: how many are in flight, which failed, and which have to be sent again."""

    requests: Requests
    limit: InFlightLimit
    what: str
    in_flight: int = 0
    failed: list[tuple[RowWrite, Exception]] = field(default_factory=list)
    to_resend: list[RowWrite] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def send(self, write: RowWrite) -> None:
        """Send a write as soon as the limit permits it."""
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
        """Resend failed writes, and wait for all that are in flight. Raises the error if one failed; after
        `Unanswered`, this may be called again.
        """
        to_resend, self.to_resend = self.to_resend, []
        for write in to_resend:
            self.send(write)
        with self.changed:
            self.changed.wait_for(lambda: self.in_flight == 0)
        failed, self.failed = self.failed, []
        if failed:
            self.to_resend = [write for write, _ in failed]
            # A rejection is permanent, so it has priority over other errors.
            raise next((error for _, error in failed if not isinstance(error, Unanswered)), failed[0][1])

    def _answered(self, write: RowWrite, error: Exception | None = None) -> None:
        self.limit.release(write.size)
        with self.changed:
            self.in_flight -= 1
            if error is not None:
                self.failed.append((write, error))
            self.changed.notify_all()


def write_all(requests: Requests, limit: InFlightLimit, what: str, writes: Iterable[RowWrite]) -> int:
    """Write rows and return their number. When this returns, all are stored.

    Raises `StoreUnavailable` if some were not answered before the retry policy's deadline; the others may have been
    stored.
    """
    writes_in_flight = _InFlightWrites(requests, limit, what)
    count = 0
    for write in writes:
        writes_in_flight.send(write)
        count += 1
        # Stop sending further rows while some failed.
        if writes_in_flight.failed:
            requests.retries.run(writes_in_flight.finish)
    requests.retries.run(writes_in_flight.finish)
    return count
