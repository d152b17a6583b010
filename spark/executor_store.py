"""The executors' access to the store: opened where a task runs, once per Python process."""

import pickle
from dataclasses import dataclass
from typing import Protocol

from strandline.clock import SystemClock
from strandline.store.cassandra.store import open_cassandra_store
from strandline.store.connection import CassandraConnection
from strandline.store.protocol import Store


class StoreOpener(Protocol):
    """Opens the store. It is sent to the executors with everything in it, including passwords (see docs/spark.md)."""

    def __call__(self) -> Store:
        """Open a store, which the caller owns."""
        ...


@dataclass(frozen=True, slots=True)
class CassandraOpener:
    """Opens the store in Cassandra, whose tables must exist. Files that the connection names, such as a CA certificate,
    must be at the same paths on every executor.
    """

    connection: CassandraConnection

    def __call__(self) -> Store:
        return open_cassandra_store(self.connection, SystemClock())


class _StoreCache:
    """The store of this process and the opener that opened it. A Python worker runs many tasks, one at a time; a new
    connection would take longer than many of them.
    """

    def __init__(self) -> None:
        self._opened_by = b""
        self._store: Store | None = None

    def get(self, opener: StoreOpener) -> Store:
        pickled = pickle.dumps(opener)
        if self._store is None or pickled != self._opened_by:
            if self._store is not None:
                self._store.close()
                self._store = None
            self._store, self._opened_by = opener(), pickled
        return self._store


_CACHE = _StoreCache()


def cached_store(opener: StoreOpener) -> Store:
    """The store of an opener, cached for the next task of this process with an equal opener."""
    return _CACHE.get(opener)
