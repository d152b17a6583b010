"""From a part key's 128-bit hash to its part id, for millions of keys and whole batches at a time.

One writer and no locks: whoever else wants to look keys up asks the writer.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strandline.arrays import Rows, U32s, U64s
from strandline.errors import Fatal
from strandline.index.kernels import key_table as kernels

MISSING = int(kernels.MISSING)
FULLEST = 0.7  # Of the slots. Runs of linear probing stay short below that.
SMALLEST = 1024


class OutOfPartIds(Fatal):
    """A shard has given out every part id that there is."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """Part ids of a batch, `MISSING` where a key was refused, and the rows of the keys that are new, in order."""

    part_ids: U32s
    new_rows: Rows
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
        """The part id of each key, or `MISSING`."""
        part_ids = np.empty(len(low), dtype=np.uint32)
        kernels.find(self._slots, low, high, part_ids)
        return part_ids

    def assign(self, low: U64s, high: U64s, *, next_id: int, most: int) -> Assigned:
        """The part id of each key. Keys that are not there get the next ids, in the order of their first rows.

        At most `most` keys are ever in the table: past that new ones are refused, and those that are there go on.
        """
        part_ids = np.empty(len(low), dtype=np.uint32)
        if kernels.find(self._slots, low, high, part_ids) == 0:
            return Assigned(part_ids, np.empty(0, dtype=np.int64), 0)
        rows = np.flatnonzero(part_ids == MISSING)
        room = max(0, min(len(rows), most - self._used))
        if next_id + room > MISSING:
            raise OutOfPartIds(
                f"part id {next_id} and {room} more do not fit into 32 bits",
                remedy="Move the dataset to more partitions: ids are never used again",
            )
        self.reserve(self._used + room)
        first_rows = np.empty(room, dtype=np.int64)
        new = kernels.assign(self._slots, low, high, rows, next_id, room, part_ids, first_rows)
        self._used += new
        return Assigned(part_ids, first_rows[:new], int(np.count_nonzero(part_ids[rows] == MISSING)))

    def insert(self, low: U64s, high: U64s, part_ids: U32s) -> npt.NDArray[np.bool_]:
        """Put keys in under ids that were given before; which of them were new. A key that is there keeps its id."""
        self.reserve(self._used + len(low))
        new = np.empty(len(low), dtype=np.bool_)
        self._used += int(kernels.insert(self._slots, low, high, part_ids, new))
        return new

    def remove(self, low: U64s, high: U64s) -> int:
        """Take keys out; how many were there."""
        removed = int(kernels.remove(self._slots, low, high))
        self._used -= removed
        return removed

    def dump(self) -> tuple[U64s, U64s, U32s]:
        """Every key and its part id as columns, in no order: what a snapshot holds, and `insert` takes."""
        low, high = np.empty(self._used, dtype=np.uint64), np.empty(self._used, dtype=np.uint64)
        part_ids = np.empty(self._used, dtype=np.uint32)
        kernels.dump(self._slots, low, high, part_ids)
        return low, high, part_ids

    def reserve(self, keys: int) -> None:
        """Make room for so many keys in all, so that nothing has to move until there are more."""
        if keys > FULLEST * (len(self._slots) // kernels.WORDS):
            larger = _empty_slots(keys)
            kernels.rehash(self._slots, larger)
            self._slots = larger


def _empty_slots(keys: int) -> U64s:
    slots = SMALLEST
    while keys > FULLEST * slots:
        slots *= 2
    return np.full(slots * kernels.WORDS, kernels.EMPTY, dtype=np.uint64)
