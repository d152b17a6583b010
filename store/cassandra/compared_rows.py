"""Rows that only compare-and-sets change: one code for every table of them.

A change reads the row, compares it with the expected one, and is then made on condition of the stamp that it found. The
stamp is random and new with each write, so a writer whose answer was missed finds out by reading whether it was its own
write. Rows of an older schema version, which lack some columns, are compared as any other.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar

from strandline.store.batches import batches
from strandline.store.cassandra.expiry import seconds_to_live
from strandline.store.cassandra.failures import Unanswered
from strandline.store.cassandra.requests import Answer, Requests, Values
from strandline.store.cassandra.statements import ComparedTable, Statement
from strandline.store.compared import ComparedRow, require_same_key

R = TypeVar("R", bound=ComparedRow)

Key = tuple[object, ...]
Change = tuple[Statement, Values]

MAX_BATCH_ROWS: Final = 500
"""So many rows are changed together. A batch is decided as one, so a larger one holds others back for longer."""
# What a row of numbers takes in a batch, with what a server adds for each column.
_ROW_BYTES: Final = 1_024


@dataclass(frozen=True, slots=True)
class TableSpec(Generic[R]):
    """A table: its statements, and what becomes of a value in its columns, and of columns behind a key."""

    statements: ComparedTable
    values: Callable[[R], tuple[object, ...]]
    row: Callable[[Sequence[Any], Sequence[Any]], R]


@dataclass(frozen=True, slots=True)
class _Stored(Generic[R]):
    """A row, and the stamp of the write that it is from."""

    row: R
    stamp: uuid.UUID


@dataclass(frozen=True, slots=True)
class ComparedRows(Generic[R]):
    """One table."""

    requests: Requests
    table: TableSpec[R]

    def read(self, what: str, partition: Key) -> list[R]:
        """The rows of a partition in order, each as it was at some moment of the call. `what` is "the jobs of ..."."""
        rows = self.requests.read(f"read {what}", self.table.statements.rows, partition)
        return [stored.row for row in rows if (stored := self._stored(partition, row)) is not None]

    def read_one(self, what: str, key: Key) -> R | None:
        """What stands in a key."""
        values = (*key, key[-1])
        rows = self.requests.read(f"read {what}", self.table.statements.between, values)
        stored = self._stored(key[:-1], rows[0]) if rows else None
        return stored.row if stored is not None else None

    def add(self, rows: Sequence[R]) -> bool:
        """Put rows of one partition in their places, where there are none; whether all are there now as given. Once one
        is found to be another, no more are put.
        """
        stamp = uuid.uuid4()
        return all(self.requests.retries.run(partial(self._add, batch, stamp)) for batch in self._batches(rows))

    def replace(self, before: R, after: R) -> bool:
        """Put `after` in the key of `before`, if that is still as it was."""
        require_same_key(before, after)
        stamp = uuid.uuid4()

        def attempt() -> bool:
            stored = self._read_some([before]).get(before.primary_key)
            if stored is not None and stored.stamp == stamp:
                return True  # By a try that was not answered.
            if stored is None or stored.row.compared != before.compared:
                return False
            if not self._send(_doing("replace", [before]), [self._put(after, stamp, stored.stamp)]).applied:
                raise Unanswered(f"{before.name} was changed while it was replaced", remedy="Try again")
            return True

        return self.requests.retries.run(attempt)

    def remove(self, rows: Sequence[R]) -> bool:
        """Take rows of one partition away that are still as they were; whether all of them were. After a missed answer
        one that is gone counts as taken away by this call: it leaves nothing behind that could tell who did it, and its
        going gives nobody a right.
        """
        # All batches, whatever became of those before.
        are_removed = [self._remove(batch) for batch in self._batches(rows)]
        return all(are_removed)

    def _add(self, rows: Sequence[R], stamp: uuid.UUID) -> bool:
        # Also after a try that was not answered: then this finds what it wrote.
        found = self._read_some(rows)
        missing = [row for row in rows if row.primary_key not in found]
        if any(row != found[row.primary_key].row for row in rows if row.primary_key in found):
            return False
        what = _doing("add", rows)
        if missing and not self._send(what, [self._put(row, stamp, None) for row in missing]).applied:
            raise Unanswered(f"something else was put into the key of {_named(rows)}", remedy="Try again")
        return True

    def _remove(self, rows: Sequence[R]) -> bool:
        missed: set[Key] = set()

        def attempt() -> bool:
            found = self._read_some(rows)
            same = [
                row for row in rows if row.primary_key in found and found[row.primary_key].row.compared == row.compared
            ]
            gone = [row for row in rows if row.primary_key not in found and row.primary_key in missed]
            changes = [(self.table.statements.remove, (*row.primary_key, found[row.primary_key].stamp)) for row in same]
            try:
                is_done = not same or self._send(_doing("remove", rows), changes).applied
            except Unanswered:
                missed.update(row.primary_key for row in same)
                raise
            if not is_done:
                raise Unanswered(f"{_named(rows)} was changed while it was removed", remedy="Try again")
            return len(same) + len(gone) == len(rows)

        return self.requests.retries.run(attempt)

    def _read_some(self, rows: Sequence[R]) -> Mapping[Key, _Stored[R]]:
        """What stands in the places of rows, and between them. Raises `Unanswered`."""
        partition = rows[0].primary_key[:-1]
        ends: list[Any] = [row.primary_key[-1] for row in rows]
        what, values = _doing("read", rows), (*partition, min(ends), max(ends))
        read = self.requests.read_once if len(rows) == 1 else self.requests.read
        found = read(what, self.table.statements.between, values)
        stored = (self._stored(partition, row) for row in found)
        return {one.row.primary_key: one for one in stored if one is not None}

    def _stored(self, partition: Key, row: Any) -> _Stored[R] | None:
        at, stamp, *values = row
        if stamp is None:
            # Left over of columns that a node of schema version 2 did not write again: they may outlive the others.
            return None
        return _Stored(self.table.row((*partition, at), values), stamp)

    def _put(self, row: R, stamp: uuid.UUID, instead_of: uuid.UUID | None) -> Change:
        """A row, to be written if what stands there has the stamp `instead_of`, or nothing does."""
        values = (seconds_to_live(row.life), stamp, *self.table.values(row), *row.primary_key, instead_of)
        return self.table.statements.put, values

    def _send(self, what: str, changes: Sequence[Change]) -> Answer:
        """Send changes once, which are made all or none."""
        if len(changes) == 1:
            return self.requests.compare_and_set(what, *changes[0])
        batched = [self.requests.bind(*change) for change in changes[1:]]
        return self.requests.compare_and_set_all(what, changes[0], batched)

    def _batches(self, rows: Sequence[R]) -> Iterable[list[R]]:
        return batches(sorted(rows, key=_order), self._bytes, max_rows=MAX_BATCH_ROWS)

    def _bytes(self, row: R) -> int:
        """How many bytes a row takes in a batch, or some more."""
        texts = (value for value in (*row.primary_key, *self.table.values(row)) if isinstance(value, str))
        return _ROW_BYTES + sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)


def _order(row: ComparedRow) -> Any:
    return row.primary_key


def _named(rows: Sequence[ComparedRow]) -> str:
    others = f" and {len(rows) - 1} others" if len(rows) > 1 else ""
    return rows[0].name + others


def _doing(what: str, rows: Sequence[ComparedRow]) -> str:
    return f"{what} {_named(rows)}"
