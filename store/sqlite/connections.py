"""Connections to the file: any number of concurrent readers, and one writer at a time.

SQLite's write-ahead log gives each reader a snapshot of the file while a writer continues. Connections are borrowed for
one transaction, and may move between threads. A connection must not be used after a fork: open the store in the process
that uses it.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strandline.clock import SystemClock, wait_until
from strandline.store.protocol import StoreRefused
from strandline.store.sqlite.failures import is_busy, store_errors, waited_too_long
from strandline.store.sqlite.schema import ensure_schema

# The usual number of concurrent readers and writers; more are opened when needed, and closed after use.
_IDLE_CONNECTIONS = 8
# The log is truncated to this size after a large write was checkpointed.
_LOG_BYTES = 64 * 2**20
# Segments have 64 KB and index rows up to 1 MB: with SQLite's default of 4 KB, their chains of pages would be long.
_SQLITE_PAGE_BYTES = 16_384


class Connections:
    """Transactions on one file, from any thread. SQLite's errors are translated into the store's."""

    def __init__(self, path: Path, *, busy_timeout: float) -> None:
        """Open the file, or create it. Raises `StoreRefused` if it is not a store, or was written by a newer
        version.
        """
        # Absolute, because relative names such as ":memory:" have a special meaning in SQLite.
        self._path = path.absolute()
        self._busy_timeout = busy_timeout
        self._writer = threading.Lock()
        self._guard = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        try:
            # Files of other programs are rejected before anything in them is changed.
            with self.writing() as connection:
                ensure_schema(connection, self._path)
            self._use_write_ahead_log()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close idle connections now and the others when they are returned. Closing twice has no effect."""
        with self._guard:
            self._closed = True
            idle, self._idle = self._idle, []
        with store_errors(self._path):
            for connection in idle:
                connection.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection with a snapshot of the file for the duration of the context, which should be short."""
        with self._borrowed() as connection:
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection whose changes are all on disk at the end of the context, or discarded after an error."""
        # Threads wait here rather than for SQLite's lock, which is polled with growing intervals.
        if not self._writer.acquire(timeout=self._busy_timeout):
            raise waited_too_long(self._path, self._busy_timeout)
        try:
            with self._borrowed() as connection:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
        finally:
            self._writer.release()

    @contextmanager
    def _borrowed(self) -> Iterator[sqlite3.Connection]:
        with store_errors(self._path):
            connection = self._take()
            try:
                yield connection
            except BaseException:
                self._end_transaction(connection)
                raise
            finally:
                self._give_back(connection)

    def _take(self) -> sqlite3.Connection:
        with self._guard:
            if self._closed:
                raise StoreRefused(f"the store {self._path} is closed", remedy="Open it again")
            if self._idle:
                return self._idle.pop()
        return self._open()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=self._busy_timeout, isolation_level=None, check_same_thread=False
        )
        try:
            # The page size only applies to a new file.
            connection.execute(f"PRAGMA page_size = {_SQLITE_PAGE_BYTES}")
            # Acknowledged writes survive a power failure.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
        except BaseException:
            connection.close()
            raise
        return connection

    @staticmethod
    def _end_transaction(connection: sqlite3.Connection) -> None:
        # Some errors have already ended the transaction.
        if connection.in_transaction:
            connection.execute("ROLLBACK")

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._guard:
            # A connection that is still in a transaction could not be rolled back; closing it does that.
            if not self._closed and not connection.in_transaction and len(self._idle) < _IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()

    def _use_write_ahead_log(self) -> None:
        """Switch the file to the write-ahead log, permanently.

        That requires a moment when no other connection is in a transaction, and SQLite itself does not wait for one.
        """
        with self._borrowed() as connection:

            def switched() -> bool:
                try:
                    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
                except sqlite3.OperationalError as error:
                    if is_busy(error):
                        return False
                    raise
                if mode != "wal":
                    raise StoreRefused(
                        f"the store {self._path} can't have a write-ahead log: its disk has no shared memory for it",
                        remedy="Put the file on a local disk",
                    )
                return True

            # Wait for other processes in real time, independent of the clock for expiry.
            if not wait_until(switched, timeout=self._busy_timeout, clock=SystemClock()):
                raise waited_too_long(self._path, self._busy_timeout)
