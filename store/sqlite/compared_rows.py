"""Rows that are changed only if they are as expected, in every table of them.

Each call reads and writes within one transaction of the caller.
"""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from strandline.store.compared import ComparedRow, require_same_key

R = TypeVar("R", bound=ComparedRow)

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class ComparedTable(Generic[R]):
    """A table: the columns of its key, the other columns, and the conversion between them and a value.

    The last column of the key is unique within a partition.
    """

    name: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    values: Callable[[R], tuple[object, ...]]
    row: Callable[[Sequence[Any], Sequence[Any]], R]

    def read(self, connection: sqlite3.Connection, partition: Key) -> list[R]:
        """Return the rows of a partition in order."""
        ordered = f"{self._select(self.key[:-1])} ORDER BY {self.key[-1]}"
        return [self.row((*partition, at), values) for at, *values in connection.execute(ordered, partition)]

    def read_one(self, connection: sqlite3.Connection, primary_key: Key) -> R | None:
        """Return the row with a primary key, if there is one."""
        found = connection.execute(self._select(self.key), primary_key).fetchone()
        return None if found is None else self.row(primary_key, found[1:])

    def add(self, connection: sqlite3.Connection, row: R, *, now: int) -> bool:
        """Add a row, unless its key exists. Return whether the stored row is now the given one."""
        there = self.read_one(connection, row.primary_key)
        if there is not None:
            return there == row
        self._write(connection, row, now)
        return True

    def replace(self, connection: sqlite3.Connection, before: R, after: R, *, now: int) -> bool:
        """Replace `before` by `after`, if the compared values are unchanged."""
        require_same_key(before, after)
        if not self._is_as(connection, before):
            return False
        self._write(connection, after, now)
        return True

    def remove(self, connection: sqlite3.Connection, row: R) -> bool:
        """Remove a row, if its compared values are unchanged."""
        if not self._is_as(connection, row):
            return False
        connection.execute(f"DELETE FROM {self.name} WHERE {_are(self.key)}", row.primary_key)  # noqa: S608
        return True

    def _is_as(self, connection: sqlite3.Connection, row: R) -> bool:
        there = self.read_one(connection, row.primary_key)
        return there is not None and there.compared == row.compared

    def _select(self, key: tuple[str, ...]) -> str:
        columns = ", ".join((self.key[-1], *self.columns))
        return f"SELECT {columns} FROM {self.name} WHERE {_are(key)}"  # noqa: S608

    def _write(self, connection: sqlite3.Connection, row: R, now: int) -> None:
        columns = (*self.key, "expires", *self.columns)
        places = ", ".join("?" * len(columns))
        connection.execute(
            f"INSERT OR REPLACE INTO {self.name} ({', '.join(columns)}) VALUES ({places})",  # noqa: S608
            (*row.primary_key, now + row.life, *self.values(row)),
        )


def _are(columns: tuple[str, ...]) -> str:
    return " AND ".join(f"{column} = ?" for column in columns)
