"""Rows that only compare-and-sets change, in every table of them.

A change reads the row, compares it with the expected one, and writes on condition of the stamp that it read. Each write
has a new random stamp, so a writer whose answer was lost reads the row to determine whether the write was its own. Rows
of an older schema version, which lack some columns, are compared like any other.
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
"""The rows per batch. A batch is decided as a whole, so larger ones would delay other writers longer."""
# The size of a row without texts in a batch, with what a server adds for each column.
_ROW_BYTES: Final = 1_024


@dataclass(frozen=True, slots=True)
class TableSpec(Generic[R]):
    """A table: its statements, and the conversion between a value and its columns."""

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
        """Return the rows of a partition in order, each as it was at some moment during the call. `what` is "the jobs
        of ...".
        """
        rows = self.requests.read(f"read {what}", self.table.statements.rows, partition)
        return [stored.row for row in rows if (stored := self._stored(partition, row)) is not None]

    def read_one(self, what: str, key: Key) -> R | None:
        """Return the row with a key, if there is one."""
        values = (*key, key[-1])
        rows = self.requests.read(f"read {what}", self.table.statements.between, values)
        stored = self._stored(key[:-1], rows[0]) if rows else None
        return stored.row if stored is not None else None

    def add(self, rows: Sequence[R]) -> bool:
        """Add rows of one partition where there are none. Return whether all stored rows are now the given ones. After
        a row that differs, no further batches are written.
        """
        stamp = uuid.uuid4()
        return all(self.requests.retries.run(partial(self._add, batch, stamp)) for batch in self._batches(rows))

    def replace(self, before: R, after: R) -> bool:
        """Replace `before` by `after`, if the stored row is unchanged."""
        require_same_key(before, after)
        stamp = uuid.uuid4()

        def attempt() -> bool:
            stored = self._read_some([before]).get(before.primary_key)
            if stored is not None and stored.stamp == stamp:
                return True  # Written by an attempt whose answer was lost.
            if stored is None or stored.row.compared != before.compared:
                return False
            if not self._send(_doing("replace", [before]), [self._put(after, stamp, stored.stamp)]).applied:
                raise Unanswered(f"{before.name} was changed concurrently with its replacement", remedy="Try again")
            return True

        return self.requests.retries.run(attempt)

    def remove(self, rows: Sequence[R]) -> bool:
        """Remove the rows of one partition that are unchanged. Return whether all of them were. After a lost answer, a
        row that no longer exists counts as removed by this call: nothing is left that could identify the writer, and a
        removal gives no rights.
        """
        # Also the batches after one that failed.
        are_removed = [self._remove(batch) for batch in self._batches(rows)]
        return all(are_removed)

    def _add(self, rows: Sequence[R], stamp: uuid.UUID) -> bool:
        # Also after an attempt whose answer was lost: then this finds what it wrote.
        found = self._read_some(rows)
        missing = [row for row in rows if row.primary_key not in found]
        if any(row != found[row.primary_key].row for row in rows if row.primary_key in found):
            return False
        what = _doing("add", rows)
        if missing and not self._send(what, [self._put(row, stamp, None) for row in missing]).applied:
            raise Unanswered(f"another row was added concurrently under the key of {_named(rows)}", remedy="Try again")
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
                raise Unanswered(f"{_named(rows)} was changed concurrently with its removal", remedy="Try again")
            return len(same) + len(gone) == len(rows)

        return self.requests.retries.run(attempt)

    def _read_some(self, rows: Sequence[R]) -> Mapping[Key, _Stored[R]]:
        """Return the stored rows with the keys of these rows, and those between them. Raises `Unanswered`."""
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
            # Leftover columns that a node of schema version 2 did not write again: they may outlive the others.
            return None
        return _Stored(self.table.row((*partition, at), values), stamp)

    def _put(self, row: R, stamp: uuid.UUID, instead_of: uuid.UUID | None) -> Change:
        """Make the write of a row, conditional on the stamp `instead_of`; None: on no row being there."""
        values = (seconds_to_live(row.life), stamp, *self.table.values(row), *row.primary_key, instead_of)
        return self.table.statements.put, values

    def _send(self, what: str, changes: Sequence[Change]) -> Answer:
        """Send changes once, which are applied completely or not at all."""
        if len(changes) == 1:
            return self.requests.compare_and_set(what, *changes[0])
        batched = [self.requests.bind(*change) for change in changes[1:]]
        return self.requests.compare_and_set_all(what, changes[0], batched)

    def _batches(self, rows: Sequence[R]) -> Iterable[list[R]]:
        return batches(sorted(rows, key=_order), self._bytes, max_rows=MAX_BATCH_ROWS)

    def _bytes(self, row: R) -> int:
        """An upper estimate of the bytes that a row takes in a batch."""
        texts = (value for value in (*row.primary_key, *self.table.values(row)) if isinstance(value, str))
        return _ROW_BYTES + sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)


def _order(row: ComparedRow) -> Any:
    return row.primary_key


def _named(rows: Sequence[ComparedRow]) -> str:
    others = f" and {len(rows) - 1} others" if len(rows) > 1 else ""
    return rows[0].name + others


def _doing(what: str, rows: Sequence[ComparedRow]) -> str:
    return f"{what} {_named(rows)}"
