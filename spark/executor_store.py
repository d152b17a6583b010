"""The store as executors see it: opened where the task runs, once a Python process."""

import pickle
from dataclasses import dataclass
from typing import Protocol

from strandline.clock import SystemClock
from strandline.store.cassandra.store import open_cassandra_store
from strandline.store.connection import CassandraConnection
from strandline.store.protocol import Store


class StoreOpener(Protocol):
    """Opens the store. It travels to the executors with all that it holds, passwords too: docs/spark.md says more."""

    def __call__(self) -> Store:
        """A store of the caller's own."""
        ...


@dataclass(frozen=True, slots=True)
class CassandraOpener:
    """Opens the store in Cassandra, whose tables must be there. Files that the connection names, such as an
    authority's certificate, must lie at the same place on every executor.
    """

    connection: CassandraConnection

    def __call__(self) -> Store:
        return open_cassandra_store(self.connection, SystemClock())


class _StoreCache:
    """The store of this process, with what opened it. A Python worker runs one task at a time, and many after another;
    connecting anew for each would take longer than many a task.
    """

    def __init__(self) -> None:
        self._opened_by = b""
        self._store: Store | None = None

    def get(self, opener: StoreOpener) -> Store:
        told = pickle.dumps(opener)
        if self._store is None or told != self._opened_by:
            if self._store is not None:
                self._store.close()
                self._store = None
            self._store, self._opened_by = opener(), told
        return self._store


_CACHE = _StoreCache()


def cached_store(opener: StoreOpener) -> Store:
    """The store that an opener opens, kept for the next task of this process that asks with an equal one."""
    return _CACHE.get(opener)
