"""Connections to the file: any number of readers, whom nobody waits for, and one writer at a time.

SQLite's write-ahead log gives each reader the file as of one moment while a writer goes on. Connections are borrowed
for one transaction and belong to no thread. None may cross a fork: open the store in the process that uses it.
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

# As many as usually read or write at the same time; more are opened when asked for, and closed after use.
_IDLE_CONNECTIONS = 8
# The log is cut back to this after a large write has been carried over into the file.
_LOG_BYTES = 64 * 2**20
# Segments have 64 KB and index rows up to 1 MB: with SQLite's usual 4 KB their chains of pages would be long.
_PAGE_BYTES = 16_384


class Connections:
    """Transactions on one file, from any thread. Errors are those of a store, never SQLite's own."""

    def __init__(self, path: Path, *, busy_timeout: float) -> None:
        """Open the file, or make it. Raises `StoreRefused` if it is not a store's, or one of a newer version."""
        # Absolute: a relative name could be one that means something else to SQLite, as ":memory:" does.
        self._path = path.absolute()
        self._busy_timeout = busy_timeout
        self._writer = threading.Lock()
        self._guard = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        try:
            # Foreign files are refused before anything in them is changed.
            with self.writing() as connection:
                ensure_schema(connection, self._path)
            self._use_write_ahead_log()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close what is idle now and the rest as it comes back. Closing twice does nothing."""
        with self._guard:
            self._closed = True
            idle, self._idle = self._idle, []
        with store_errors(self._path):
            for connection in idle:
                connection.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees the file as of one moment, for as long as this lasts: keep it short."""
        with self._borrowed() as connection:
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection whose changes are all on disk when this ends, or none of them if it ends by an error."""
        # Threads wait here rather than for SQLite's lock, which is polled for with growing pauses.
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
            # Only a file that is being made takes the page size.
            connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            # What was acknowledged survives a power cut.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
        except BaseException:
            connection.close()
            raise
        return connection

    @staticmethod
    def _end_transaction(connection: sqlite3.Connection) -> None:
        # Some errors have ended it already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._guard:
            # One that is still in a transaction could not be rolled back; closing it does that.
            if not self._closed and not connection.in_transaction and len(self._idle) < _IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()

    def _use_write_ahead_log(self) -> None:
        """Switch the file over, once for all time.

        That takes a moment at which no other connection is in a transaction, and SQLite itself does not wait for one.
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

            # Other processes are waited for in real time, whatever clock the rows live by.
            if not wait_until(switched, timeout=self._busy_timeout, clock=SystemClock()):
                raise waited_too_long(self._path, self._busy_timeout)
