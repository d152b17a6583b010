"""Backups of a simulated store: copies of single tables at different times, and worlds that are restored from them."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from strandline.store.protocol import Store
from support.shard_world import FaultyStore, World

# In Cassandra the first three are one table, `manifest`.
NAMES = ("shards", "cuts", "flush_groups", "datasets")
DATA = ("segments", "index_buckets")

Tables = Mapping[str, Sequence[tuple[Any, ...]]]


def copied(world: World, tables: Sequence[str]) -> Tables:
    """The current rows of some tables."""
    with closing(sqlite3.connect(world.options.folder / "store.sqlite")) as connection:
        return {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables}  # noqa: S608


def restored(world: World, folder: Path, tables: Tables) -> World:
    """The same world, log and clock, with a new store that has only these rows."""
    folder.mkdir()
    other = _beside(world, folder)
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection, connection:
        for table, rows in tables.items():
            for row in rows:
                places = ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO {table} VALUES ({places})", row)  # noqa: S608
    return other


def restored_file(world: World, folder: Path, backup: Path) -> World:
    """The same world, with its store's file replaced by a copy."""
    folder.mkdir()
    backup.rename(folder / "store.sqlite")
    return _beside(world, folder)


class CountedStore:
    """A store that runs an action right after one of its calls, in addition to other hooks."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._left, self._action = 0, _nothing

    def after(self, calls: int, action: Callable[[], None]) -> None:
        """Run the action after this many further calls."""
        self._left, self._action = calls, action

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)

        def counted(*arguments: Any, **options: Any) -> Any:
            result = call(*arguments, **options)
            self._left -= 1
            if self._left == 0:
                self._action()
            return result

        return counted


def count_calls(world: World) -> CountedStore:
    """Count the calls to a world's store from the next start of its shard on."""
    counted = CountedStore(world.sqlite)
    world.store = FaultyStore(counted)
    return counted


def _nothing() -> None:
    """The default action."""


def _beside(world: World, folder: Path) -> World:
    other = World(folder, clock=world.clock)
    other.options = replace(world.options, folder=folder)
    other.log, other.produced, other.machine = world.log, world.produced, world.machine
    return other
