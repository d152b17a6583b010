"""How executors open the store: values that travel to them."""

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
    """Executors can't get at the store."""


@dataclass(frozen=True, slots=True)
class SqliteOpener:
    """Opens the store in a file of this machine."""

    path: Path

    def __call__(self) -> Store:
        return open_sqlite_store(self.path, SystemClock())


def store_opener(settings: Settings, data_folder: Path) -> StoreOpener:
    """For the store that the settings name. Raises `StoreOutOfReach` for a file that a cluster can't see."""
    if settings.store.kind == "sqlite" and not settings.spark.master.startswith("local"):
        raise StoreOutOfReach(
            f"the store is a file of this machine, and Spark's executors run on {settings.spark.master}",
            remedy='Set spark.master to "local[*]", or store.kind to "cassandra"',
        )
    return _opener(settings, data_folder)


def own_store_opener(settings: Settings, environ: Mapping[str, str]) -> StoreOpener:
    """The same for processes of this machine, which see its files."""
    return _opener(settings, settings.shard.data_folder(environ))


def _opener(settings: Settings, data_folder: Path) -> StoreOpener:
    if settings.store.kind == "sqlite":
        return SqliteOpener(settings.store.sqlite_path(data_folder))
    return CassandraOpener(cassandra_connection(settings.cassandra))
