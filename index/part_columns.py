"""What changes about keys: columns by part id.

A key is *live* while samples come, *ended* once they have stopped for long enough, and *absent* before it has its part
id and after it was purged. Times are sample times in milliseconds.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from strandline.arrays import I64s, U32s, U64s

LIVE: Final = np.iinfo(np.int64).max
ABSENT: Final = np.iinfo(np.int64).min
NO_BUCKET: Final = -1  # A key whose record no bucket holds yet.


class PartColumns:
    """The columns of one shard. They have one writer; whoever reads beside it takes copies.

    `start` is the least sample time, `last` the greatest, `end` is `LIVE`, `ABSENT` or the greatest sample time of a
    key that ended, `newest` the newest bucket that holds the key's record, `metric` the hash of its metric's name,
    `key_low` and `key_high` the hash of the key.
    """

    def __init__(self) -> None:
        self._columns = _Arrays(0)
        self._length = 0

    def __len__(self) -> int:
        """One more than the greatest part id that was ever here."""
        return self._length

    @property
    def start(self) -> I64s:
        return self._columns.start[: self._length]

    @property
    def last(self) -> I64s:
        return self._columns.last[: self._length]

    @property
    def end(self) -> I64s:
        return self._columns.end[: self._length]

    @property
    def newest(self) -> npt.NDArray[np.int32]:
        return self._columns.newest[: self._length]

    @property
    def metric(self) -> U64s:
        return self._columns.metric[: self._length]

    @property
    def key_low(self) -> U64s:
        return self._columns.key_low[: self._length]

    @property
    def key_high(self) -> U64s:
        return self._columns.key_high[: self._length]

    @property
    def nbytes(self) -> int:
        """The memory that the columns take."""
        return self._columns.nbytes

    def reserve(self, length: int) -> None:
        """Have columns for every part id below `length`; those that are new are absent."""
        if length > self._columns.capacity:
            self._columns = self._columns.grown(max(length, self._columns.capacity * 3 // 2, 1024))
        self._length = max(self._length, length)

    def begin(self, part_ids: U32s, key_low: U64s, key_high: U64s, metric: U64s) -> None:
        """Make keys live that have no sample yet: `observe` follows."""
        if len(part_ids) == 0:
            return
        self.reserve(int(part_ids.max()) + 1)
        self.start[part_ids] = LIVE
        self.last[part_ids] = ABSENT
        self.end[part_ids] = LIVE
        self.newest[part_ids] = NO_BUCKET
        self.metric[part_ids] = metric
        self.key_low[part_ids] = key_low
        self.key_high[part_ids] = key_high

    def forget(self, part_ids: U32s) -> None:
        """Make keys absent. Their ids are never used again."""
        self.end[part_ids] = ABSENT
        self.newest[part_ids] = NO_BUCKET

    def present(self) -> npt.NDArray[np.bool_]:
        """Which part ids have a key now."""
        present: npt.NDArray[np.bool_] = self.end != ABSENT
        return present


class _Arrays:
    """The arrays themselves, longer than what is in use."""

    NAMES = ("start", "last", "end", "newest", "metric", "key_low", "key_high")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.start = np.zeros(capacity, dtype=np.int64)
        self.last = np.zeros(capacity, dtype=np.int64)
        self.end = np.full(capacity, ABSENT, dtype=np.int64)
        self.newest = np.full(capacity, NO_BUCKET, dtype=np.int32)
        self.metric = np.zeros(capacity, dtype=np.uint64)
        self.key_low = np.zeros(capacity, dtype=np.uint64)
        self.key_high = np.zeros(capacity, dtype=np.uint64)

    @property
    def nbytes(self) -> int:
        return sum(getattr(self, name).nbytes for name in self.NAMES)

    def grown(self, capacity: int) -> "_Arrays":
        larger = _Arrays(capacity)
        for name in self.NAMES:
            getattr(larger, name)[: self.capacity] = getattr(self, name)
        return larger
