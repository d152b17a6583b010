"""From a part key's 128-bit hash to its row in the columns, for millions of keys and whole batches at a time.

One writer and no locks: whoever else wants to look keys up asks the writer.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strandline.arrays import Rows, U32s, U64s
from strandline.index.kernels import key_table as kernels
from strandline.index.part_columns import ABSENT, PartRows

MISSING = int(kernels.MISSING)
MAX_LOAD = 0.7  # Of the slots. Runs of linear probing stay short below that.
MIN_SLOTS = 1024


@dataclass(frozen=True, slots=True)
class Assigned:
    """The row of each key of a batch, `MISSING` where it was refused, and the places of the new keys, in order."""

    rows: U32s
    new: Rows
    refused: int


class KeyTable:
    """The key table of one shard."""

    def __init__(self, keys: int = 0) -> None:
        """An empty table with room for so many keys before it grows."""
        self._slots = _empty_slots(keys)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    @property
    def nbytes(self) -> int:
        """The memory that the slots take."""
        return int(self._slots.nbytes)

    def find(self, low: U64s, high: U64s) -> U32s:
        """The row of each key, or `MISSING`."""
        rows = np.empty(len(low), dtype=np.uint32)
        kernels.find(self._slots, low, high, rows)
        return rows

    def unassigned(self, low: U64s, high: U64s, *, max_keys: int) -> Rows:
        """The places of those keys, of which none is there twice, that `assign` would put in."""
        missing = np.flatnonzero(self.find(low, high) == MISSING)
        return missing[: max(0, max_keys - self._used)]

    def assign(
        self, low: U64s, high: U64s, *, next_row: int, max_keys: int, columns: PartRows | None = None
    ) -> Assigned:
        """The row of each key. Keys that are not there get the next rows, in the order in which they first come.

        At most `max_keys` keys are ever in the table: past that new ones are refused, and those that are there go on.
        With the columns that the rows belong to it is quicker, if keys come in the order of their rows.
        """
        rows = np.empty(len(low), dtype=np.uint32)
        if columns is None:
            missing_keys = kernels.find(self._slots, low, high, rows)
        else:
            known = (columns.key_low, columns.key_high, columns.end)
            missing_keys = kernels.find_in_order(self._slots, low, high, *known, ABSENT, rows)
        if missing_keys == 0:
            return Assigned(rows, np.empty(0, dtype=np.int64), 0)
        missing = np.flatnonzero(rows == MISSING)
        room = max(0, min(len(missing), max_keys - self._used))
        self.reserve(self._used + room)
        new = np.empty(room, dtype=np.int64)
        n_new = kernels.assign(self._slots, low, high, missing, next_row, room, rows, new)
        self._used += n_new
        return Assigned(rows, new[:n_new], int(np.count_nonzero(rows[missing] == MISSING)))

    def insert(self, low: U64s, high: U64s, rows: U32s) -> npt.NDArray[np.bool_]:
        """Put keys in with the rows that they have; which of them were new. A key that is there keeps its row."""
        self.reserve(self._used + len(low))
        new = np.empty(len(low), dtype=np.bool_)
        self._used += int(kernels.insert(self._slots, low, high, rows, new))
        return new

    def renumber(self, rows: U32s) -> None:
        """Say that the columns were sorted or squeezed: what was row i is row `rows[i]` now."""
        kernels.renumber(self._slots, rows)

    def remove(self, low: U64s, high: U64s) -> int:
        """Take keys out; how many were there."""
        removed = int(kernels.remove(self._slots, low, high))
        self._used -= removed
        return removed

    def dump(self) -> tuple[U64s, U64s, U32s]:
        """Every key and its row as columns, in no order: what `insert` takes."""
        low, high = np.empty(self._used, dtype=np.uint64), np.empty(self._used, dtype=np.uint64)
        rows = np.empty(self._used, dtype=np.uint32)
        kernels.dump(self._slots, low, high, rows)
        return low, high, rows

    def reserve(self, keys: int) -> None:
        """Make room for so many keys in all, so that nothing has to move until there are more."""
        if keys > MAX_LOAD * (len(self._slots) // kernels.WORDS):
            larger = _empty_slots(keys)
            kernels.rehash(self._slots, larger)
            self._slots = larger


def _empty_slots(keys: int) -> U64s:
    slots = MIN_SLOTS
    while keys > MAX_LOAD * slots:
        slots *= 2
    return np.full(slots * kernels.WORDS, kernels.EMPTY, dtype=np.uint64)
