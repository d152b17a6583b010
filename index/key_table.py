"""Maps the 128-bit hashes of part keys to rows of the columns, for millions of keys and whole batches at a time.

It has one writer and no locks: other threads must not use it.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strandline.arrays import Rows, U32s, U64s
from strandline.index.kernels import key_table as kernels
from strandline.index.part_columns import ABSENT, PartRows

MISSING = int(kernels.MISSING)
MAX_LOAD = 0.7  # The maximum share of used slots. Runs of linear probing stay short below that.
MIN_SLOTS = 1024


@dataclass(frozen=True, slots=True)
class Assigned:
    """The row of each key of a batch, `MISSING` if it was refused, and the indices of the new keys, in order."""

    rows: U32s
    new: Rows
    refused: int


class KeyTable:
    """The key table of one shard."""

    def __init__(self, keys: int = 0) -> None:
        """An empty table with capacity for this many keys."""
        self._slots = _empty_slots(keys)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    @property
    def nbytes(self) -> int:
        """The memory of the slots."""
        return int(self._slots.nbytes)

    def find(self, low: U64s, high: U64s) -> U32s:
        """Return the row of each key, or `MISSING`."""
        rows = np.empty(len(low), dtype=np.uint32)
        kernels.find(self._slots, low, high, rows)
        return rows

    def unassigned(self, low: U64s, high: U64s, *, max_keys: int) -> Rows:
        """Return the indices of those keys, which must be distinct, that `assign` would add."""
        missing = np.flatnonzero(self.find(low, high) == MISSING)
        return missing[: max(0, max_keys - self._used)]

    def assign(
        self, low: U64s, high: U64s, *, next_row: int, max_keys: int, columns: PartRows | None = None
    ) -> Assigned:
        """Return the row of each key. New keys get the next rows, in the order of their first occurrence.

        The table never has more than `max_keys` keys: beyond that, new keys are refused, while existing ones are found.
        With the columns of the rows it is faster, if keys come in the order of their rows.
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
        """Insert keys with their rows; return a mask of the new ones. An existing key keeps its row."""
        self.reserve(self._used + len(low))
        new = np.empty(len(low), dtype=np.bool_)
        self._used += int(kernels.insert(self._slots, low, high, rows, new))
        return new

    def renumber(self, rows: U32s) -> None:
        """Adjust the rows after the columns were sorted or squeezed: row i becomes `rows[i]`."""
        kernels.renumber(self._slots, rows)

    def remove(self, low: U64s, high: U64s) -> int:
        """Remove keys; return how many existed."""
        removed = int(kernels.remove(self._slots, low, high))
        self._used -= removed
        return removed

    def dump(self) -> tuple[U64s, U64s, U32s]:
        """Return every key and its row as columns, in no particular order, as `insert` takes them."""
        low, high = np.empty(self._used, dtype=np.uint64), np.empty(self._used, dtype=np.uint64)
        rows = np.empty(self._used, dtype=np.uint32)
        kernels.dump(self._slots, low, high, rows)
        return low, high, rows

    def reserve(self, keys: int) -> None:
        """Ensure capacity for this many keys in total."""
        if keys > MAX_LOAD * (len(self._slots) // kernels.WORDS):
            larger = _empty_slots(keys)
            kernels.rehash(self._slots, larger)
            self._slots = larger


def _empty_slots(keys: int) -> U64s:
    slots = MIN_SLOTS
    while keys > MAX_LOAD * slots:
        slots *= 2
    return np.full(slots * kernels.WORDS, kernels.EMPTY, dtype=np.uint64)
