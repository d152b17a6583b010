"""Openers of the store, which can be pickled for Spark's executors."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from strandline.clock import SystemClock
from strandline.errors import Fatal
from strandline.node.settings.clients import cassandra_connection
from strandline.node.settings.sections import Settings
from strandline.spark.executor_store import CassandraOpener, StoreOpener
from strandline.store.protocol import Store
from strandline.store.sqlite import open_sqlite_store


class StoreOutOfReach(Fatal):
    """Spark's executors can't access the store."""


@dataclass(frozen=True, slots=True)
class SqliteOpener:
    """Opens the SQLite store on this machine."""

    path: Path

    def __call__(self) -> Store:
        return open_sqlite_store(self.path, SystemClock())


def store_opener(settings: Settings, data_folder: Path) -> StoreOpener:
    """The opener of the settings' store. Raises `StoreOutOfReach` for a local file with a remote Spark cluster."""
    if settings.store.kind == "sqlite" and not settings.spark.master.startswith("local"):
        raise StoreOutOfReach(
            f"the store is a file on this machine, but Spark's executors run on {settings.spark.master}",
            remedy='Set spark.master to "local[*]", or store.kind to "cassandra"',
        )
    return _opener(settings, data_folder)


def own_store_opener(settings: Settings, environ: Mapping[str, str]) -> StoreOpener:
    """The opener of the settings' store for processes on this machine."""
    return _opener(settings, settings.shard.data_folder(environ))


def _opener(settings: Settings, data_folder: Path) -> StoreOpener:
    if settings.store.kind == "sqlite":
        return SqliteOpener(settings.store.sqlite_path(data_folder))
    return CassandraOpener(cassandra_connection(settings.cassandra))
