"""The mutable properties of keys: columns with one row per key.

A key is *live* while samples arrive, *ended* after they have stopped for long enough, and *absent* after it was purged.
Times are sample times in milliseconds.

Rows are in ascending order of part ids. Ids only rise, so new keys are appended. The rows of purged keys stay until
there are many, and are then squeezed out. So the columns are as long as there are keys, however many ids were ever
assigned, and bitmaps of ids, which are sorted too, are joined with them in one pass.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from strandline.arrays import I64s, Rows, U32s, U64s
from strandline.index.kernels.rows import rows_of_ids
from strandline.index.part_memory import PartMemory

LIVE: Final = np.iinfo(np.int64).max
ABSENT: Final = np.iinfo(np.int64).min
NO_BUCKET: Final = -1
# Rows of purged keys are squeezed out when they are this share of all, and at least this many.
SQUEEZE_FRACTION: Final = 0.25
SQUEEZE_MIN_ROWS: Final = 1024
# Columns grow by a sixteenth, to waste little memory; each key is copied about sixteen times as a result.
GROWTH: Final = 16

_TYPES: Final = {
    "part_id": np.uint32,
    "start": np.int64,
    "last": np.int64,
    "end": np.int64,
    "newest": np.int32,
    "active_in": np.int32,
    "number": np.uint32,
    "metric": np.uint64,
    "key_low": np.uint64,
    "key_high": np.uint64,
}
# The columns that determine whether a key existed: Java reads them for lookups.
_SHARED: Final = ("part_id", "start", "end")
_OWN: Final = tuple(name for name in _TYPES if name not in _SHARED)
_ROW_BYTES: Final = sum(np.dtype(kind).itemsize for kind in _TYPES.values())


@dataclass(frozen=True, slots=True)
class PartRows:
    """The columns of some keys.

    `start` is the minimum sample time, `last` the maximum, `end` is `LIVE`, `ABSENT` or the maximum sample time of an
    ended key, `newest` the newest bucket that has the key's record, `active_in` the newest bucket in which it had a
    sample, `number` its number among those that had one in that bucket, `metric` the hash of its metric name, `key_low`
    and `key_high` the hash of the key.
    """

    part_id: U32s
    start: I64s
    last: I64s
    end: I64s
    newest: npt.NDArray[np.int32]
    active_in: npt.NDArray[np.int32]
    number: U32s
    metric: U64s
    key_low: U64s
    key_high: U64s

    @classmethod
    def empty(cls, rows: int, memory: PartMemory) -> "PartRows":
        """Undefined rows. Some of the columns are in shared memory."""
        own = {name: np.zeros(rows, dtype=kind) for name, kind in _TYPES.items() if name in _OWN}
        return cls(**_shared(memory, rows), **own)

    def moved_into(self, memory: PartMemory) -> "PartRows":
        """The same rows, with the shared columns in a memory."""
        shared = _shared(memory, len(self))
        for name, column in shared.items():
            column[:] = getattr(self, name)
        return replace(self, **shared)

    @classmethod
    def new_keys(cls, part_ids: U32s, key_low: U64s, key_high: U64s, metric: U64s) -> "PartRows":
        """Live keys without samples."""
        rows = len(part_ids)
        return cls(
            part_id=part_ids,
            start=np.full(rows, LIVE),
            last=np.full(rows, ABSENT),
            end=np.full(rows, LIVE),
            newest=np.full(rows, NO_BUCKET, dtype=np.int32),
            active_in=np.full(rows, NO_BUCKET, dtype=np.int32),
            number=np.zeros(rows, dtype=np.uint32),
            metric=metric,
            key_low=key_low,
            key_high=key_high,
        )

    def take(self, rows: Rows | slice | npt.NDArray[np.bool_]) -> "PartRows":
        """Some of the rows: copies, or views for a slice."""
        return PartRows(**{name: getattr(self, name)[rows] for name in _TYPES})

    @staticmethod
    def concatenated(parts: list["PartRows"]) -> "PartRows":
        """Concatenate several."""
        return PartRows(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in _TYPES})

    def __len__(self) -> int:
        return len(self.part_id)

    def present(self) -> npt.NDArray[np.bool_]:
        """A mask of the rows that have a key now."""
        present: npt.NDArray[np.bool_] = self.end != ABSENT
        return present

    def rows_of(self, part_ids: U32s) -> Rows:
        """The row of each part id, -1 if there is none. The ids are ascending, as in a bitmap."""
        rows = np.empty(len(part_ids), dtype=np.int64)
        rows_of_ids(self.part_id, part_ids, rows)
        return rows

    def row_of(self, part_id: int) -> int:
        """The row of one part id, -1 if there is none."""
        ids = self.part_id
        length = len(ids)
        if not length:
            return -1
        # Usually no lower id was removed, and the row follows from the id.
        row = part_id - ids.item(0)
        if 0 <= row < length and ids.item(row) == part_id:
            return row
        # An array with the column's type: for a plain number, numpy would convert all ids to another type.
        row = ids.searchsorted(np.array((part_id,), dtype=ids.dtype)).item()
        return row if row < length and ids.item(row) == part_id else -1


@dataclass(frozen=True, slots=True)
class Span:
    """No key of the first `rows` began after `last_start`, and none that is present ended before `first_end`."""

    rows: int
    last_start: int
    first_end: int

    def lies_in(self, first: int, last: int) -> bool:
        """Whether every key existed at some moment of a time range (inclusive)."""
        return self.last_start <= last and self.first_end >= first


NO_KEYS: Final = Span(0, ABSENT, LIVE)


class PartColumns:
    """The growing columns of one shard. They have one writer; other threads read `rows` once, and see the keys of that
    moment with their current times.
    """

    rows: PartRows
    memory: PartMemory
    """The memory of the columns that Java also reads. Replaced when they move."""
    live: int
    """The number of live keys, for any thread. Kept as a counter, because counting reads a whole column."""
    _arrays: PartRows
    _length: int

    def __init__(self, rows: PartRows | None = None) -> None:
        """Empty, or with these rows, which are in ascending order of part ids and belong to the columns from
        then on.
        """
        self._take_over(rows)
        self.live = _live(self.rows.end)
        self._absent = int(np.count_nonzero(~self.rows.present()))
        # A span is valid until keys end: starts only fall, and resuming a key only raises its end.
        self._endings = 0
        self._span = (self._endings, NO_KEYS)

    def __len__(self) -> int:
        return self._length

    @property
    def nbytes(self) -> int:
        """The memory of the columns."""
        return len(self._arrays) * _ROW_BYTES

    def append(self, rows: PartRows) -> None:
        """Append rows; their ids are ascending and greater than the existing ones."""
        length = self._length + len(rows)
        if length > len(self._arrays):
            self._grow(max(length, len(self._arrays) + len(self._arrays) // GROWTH, 1024))
        _copy(rows, self._arrays, self._length)
        self._length = length
        self.live += _live(rows.end)
        self.rows = self._arrays.take(slice(0, length))
        self.memory.set_length(length)

    def end(self, ended: npt.NDArray[np.bool_]) -> None:
        """End keys with their last samples."""
        self.live -= _live(self.rows.end[ended])
        self.rows.end[ended] = self.rows.last[ended]
        self._endings += 1

    def resume(self, keys: int) -> None:
        """Count ended keys that samples have made live again."""
        self.live += keys

    def remove(self, rows: Rows) -> None:
        """Make keys absent. Their ids are never used again."""
        self.live -= _live(self.rows.end[rows])
        self.rows.end[rows] = ABSENT
        self.rows.newest[rows] = NO_BUCKET
        self._absent += len(rows)

    def span(self) -> Span:
        """Return when the keys existed. Thread-safe; only reads the keys that were added since the last call."""
        endings, (known_endings, known) = self._endings, self._span
        if known_endings != endings:
            known = NO_KEYS
        rows = self.rows
        if len(rows) <= known.rows:
            return known
        new = slice(known.rows, len(rows))
        present = rows.end[new] != ABSENT
        span = Span(
            len(rows),
            int(rows.start[new].max(where=present, initial=known.last_start)),
            int(rows.end[new].min(where=present, initial=known.first_end)),
        )
        if span.last_start != LIVE:  # Otherwise a key has no sample yet, but is about to get one.
            self._span = (endings, span)
        return span

    def squeeze(self) -> U32s | None:
        """Drop the rows of absent keys if there are many. Return the new row of each old one, None if nothing moved."""
        if self._absent < max(SQUEEZE_MIN_ROWS, SQUEEZE_FRACTION * self._length):
            return None
        present = self.rows.present()
        moved = (np.cumsum(present) - 1).astype(np.uint32)
        # New arrays, because other threads may be reading the old ones.
        kept = self.rows.take(present)
        self._leave_memory()
        self._take_over(kept)
        self._absent = 0
        self._endings += 1
        return moved

    def _grow(self, room: int) -> None:
        memory = self.memory if room <= self.memory.rows else PartMemory(room)
        larger = PartRows.empty(room, memory)
        if memory is self.memory:
            # The shared columns stay where they are.
            _copy(self.rows, larger, 0, _OWN)
        else:
            _copy(self.rows, larger, 0)
            self._leave_memory()
        self._arrays, self.memory = larger, memory

    def _leave_memory(self) -> None:
        """Mark the memory as empty, because later changes are not written to it. Java then finds no keys, and declines
        the lookup.
        """
        self.memory.set_length(0)

    def _take_over(self, rows: PartRows | None) -> None:
        self._length = len(rows) if rows is not None else 0
        self.memory = PartMemory(self._length)
        self._arrays = PartRows.empty(0, self.memory) if rows is None else rows.moved_into(self.memory)
        self.rows = self._arrays
        self.memory.set_length(self._length)


def _live(ends: I64s) -> int:
    return int(np.count_nonzero(ends == LIVE))


def _shared(memory: PartMemory, rows: int) -> dict[str, npt.NDArray[Any]]:
    return {name: getattr(memory, name)[:rows] for name in _SHARED}


def _copy(source: PartRows, target: PartRows, first: int, names: Iterable[str] = _TYPES) -> None:
    for name in names:
        getattr(target, name)[first : first + len(source)] = getattr(source, name)
