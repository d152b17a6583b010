"""What changes about keys: columns with a row a key.

A key is *live* while samples come, *ended* once they have stopped for long enough, and *absent* after it was purged.
Times are sample times in milliseconds.

Rows stand in rising order of part ids. Ids only rise, so that new keys go behind the others; the rows of purged ones
stay until there are many of them, and are then squeezed out. So the columns are as long as there are keys, however many
ids were ever given, and bitmaps of ids, which are sorted too, meet them in one pass.
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
# Rows of purged keys are squeezed out when they are so large a part of all, and not a handful.
SQUEEZE_FRACTION: Final = 0.25
SQUEEZE_MIN_ROWS: Final = 1024
# Columns grow by a sixteenth, so that little memory lies idle; a key is copied some sixteen times in its life for that.
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
# Those that tell whether a key was there: look-ups are answered in Java.
_SHARED: Final = ("part_id", "start", "end")
_OWN: Final = tuple(name for name in _TYPES if name not in _SHARED)
_ROW_BYTES: Final = sum(np.dtype(kind).itemsize for kind in _TYPES.values())


@dataclass(frozen=True, slots=True)
class PartRows:
    """The columns of some keys.

    `start` is the least sample time, `last` the greatest, `end` is `LIVE`, `ABSENT` or the greatest sample time of a
    key that ended, `newest` the newest bucket that holds the key's record, `active_in` the newest bucket in which it
    had a sample, `number` its number among those that had one in that bucket, `metric` the hash of its metric's name,
    `key_low` and `key_high` the hash of the key.
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
        """So many rows with no meaning yet. Some of the columns lie in a memory."""
        own = {name: np.zeros(rows, dtype=kind) for name, kind in _TYPES.items() if name in _OWN}
        return cls(**_shared(memory, rows), **own)

    def moved_into(self, memory: PartMemory) -> "PartRows":
        """The same rows with those columns in a memory that lie in one."""
        shared = _shared(memory, len(self))
        for name, column in shared.items():
            column[:] = getattr(self, name)
        return replace(self, **shared)

    @classmethod
    def new_keys(cls, part_ids: U32s, key_low: U64s, key_high: U64s, metric: U64s) -> "PartRows":
        """Keys that are live and have no sample yet."""
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
        """Some of the rows: copies, or views if they are a slice."""
        return PartRows(**{name: getattr(self, name)[rows] for name in _TYPES})

    @staticmethod
    def concatenated(parts: list["PartRows"]) -> "PartRows":
        """Several one behind the other."""
        return PartRows(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in _TYPES})

    def __len__(self) -> int:
        return len(self.part_id)

    def present(self) -> npt.NDArray[np.bool_]:
        """Which rows have a key now."""
        present: npt.NDArray[np.bool_] = self.end != ABSENT
        return present

    def rows_of(self, part_ids: U32s) -> Rows:
        """The row of each part id, -1 where there is none. The ids rise, as a bitmap's do."""
        rows = np.empty(len(part_ids), dtype=np.int64)
        rows_of_ids(self.part_id, part_ids, rows)
        return rows

    def row_of(self, part_id: int) -> int:
        """The row of one part id, -1 where there is none."""
        ids = self.part_id
        length = len(ids)
        if not length:
            return -1
        # Where no id lies between that has gone, which is so for most, it is where it would be without gaps.
        row = part_id - ids.item(0)
        if 0 <= row < length and ids.item(row) == part_id:
            return row
        # As an array: of a plain number the type is not known, and all ids would be turned into another one.
        row = ids.searchsorted(np.array((part_id,), dtype=ids.dtype)).item()
        return row if row < length and ids.item(row) == part_id else -1


@dataclass(frozen=True, slots=True)
class Span:
    """No key of the first `rows` ones began after `last_start`, and none that is there ended before `first_end`."""

    rows: int
    last_start: int
    first_end: int

    def lies_in(self, first: int, last: int) -> bool:
        """Whether every key was there at some moment of a time range, whose ends belong to it."""
        return self.last_start <= last and self.first_end >= first


NO_KEYS: Final = Span(0, ABSENT, LIVE)


class PartColumns:
    """The columns of one shard, which grow. They have one writer; whoever reads beside it asks for `rows` once, and
    sees the keys of that moment and their times as they become.
    """

    rows: PartRows
    memory: PartMemory
    """Where those columns lie that Java reads, too. Another one when they have moved."""
    live: int
    """How many keys have not ended. Any thread may look, and often: to count them reads a whole column."""
    _arrays: PartRows
    _length: int

    def __init__(self, rows: PartRows | None = None) -> None:
        """Empty, or with these rows, which rise by part id and are the columns' own from now on."""
        self._take_over(rows)
        self.live = _live(self.rows.end)
        self._absent = int(np.count_nonzero(~self.rows.present()))
        # What is known of a span holds until keys end: starts only fall, and an end that is taken back was no less.
        self._endings = 0
        self._span = (self._endings, NO_KEYS)

    def __len__(self) -> int:
        return self._length

    @property
    def nbytes(self) -> int:
        """The memory that the columns take."""
        return len(self._arrays) * _ROW_BYTES

    def append(self, rows: PartRows) -> None:
        """Put rows behind the others; their ids rise and are greater."""
        length = self._length + len(rows)
        if length > len(self._arrays):
            self._grow(max(length, len(self._arrays) + len(self._arrays) // GROWTH, 1024))
        _copy(rows, self._arrays, self._length)
        self._length = length
        self.live += _live(rows.end)
        self.rows = self._arrays.take(slice(0, length))
        self.memory.set_length(length)

    def end(self, ended: npt.NDArray[np.bool_]) -> None:
        """Let keys end with their last samples."""
        self.live -= _live(self.rows.end[ended])
        self.rows.end[ended] = self.rows.last[ended]
        self._endings += 1

    def resume(self, keys: int) -> None:
        """So many that had ended were made live again, by samples."""
        self.live += keys

    def remove(self, rows: Rows) -> None:
        """Make keys absent. Their ids are never used again."""
        self.live -= _live(self.rows.end[rows])
        self.rows.end[rows] = ABSENT
        self.rows.newest[rows] = NO_BUCKET
        self._absent += len(rows)

    def span(self) -> Span:
        """When the keys were there. Any thread may ask; only keys that came since somebody asked cost something."""
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
        if span.last_start != LIVE:  # Else one has no sample yet, and will have in a moment.
            self._span = (endings, span)
        return span

    def squeeze(self) -> U32s | None:
        """Drop the rows of absent keys if they are many: the new row of each old one, None if nothing moved."""
        if self._absent < max(SQUEEZE_MIN_ROWS, SQUEEZE_FRACTION * self._length):
            return None
        present = self.rows.present()
        moved = (np.cumsum(present) - 1).astype(np.uint32)
        # New arrays: somebody may be reading the old ones.
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
            # What lies in it stays where it is.
            _copy(self.rows, larger, 0, _OWN)
        else:
            _copy(self.rows, larger, 0)
            self._leave_memory()
        self._arrays, self.memory = larger, memory

    def _leave_memory(self) -> None:
        """What changes from now on does not show there. Who reads it in Java finds nothing, and asks elsewhere."""
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
