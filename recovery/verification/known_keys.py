"""All keys in the index buckets of a shard, with their current and earlier ids.

A key keeps its id, but a key that was purged and returned has a new one. That is a fault only if the old id was not
purged before the first sample of the new one. The record in a key's newest bucket is the one that counts.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from strandline.arrays import I64s, Rows, U32s, U64s
from strandline.index.bitmaps import to_bitmap, to_ids
from strandline.index.bucket_codec import StoredBucket
from strandline.index.kernels.part_keys import hash_metrics
from strandline.index.kernels.rows import rows_of_ids
from strandline.index.key_table import MISSING, KeyTable
from strandline.index.part_columns import LIVE
from strandline.index.policy import BucketPolicy

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Records:
    """Records of keys as columns: the bucket that contains each, the part id, the key's number, the start and end."""

    bucket: I64s
    part_id: U32s
    number: U32s
    start: I64s
    end: I64s

    def __len__(self) -> int:
        return len(self.bucket)

    def take(self, rows: Rows | Mask | slice) -> "Records":
        """Some of them."""
        return Records(self.bucket[rows], self.part_id[rows], self.number[rows], self.start[rows], self.end[rows])

    @staticmethod
    def concatenated(parts: Sequence["Records"]) -> "Records":
        """Several, one after the other."""
        none = Records(
            np.empty(0, dtype=np.int64),
            np.empty(0, dtype=np.uint32),
            np.empty(0, dtype=np.uint32),
            np.empty(0, dtype=np.int64),
            np.empty(0, dtype=np.int64),
        )
        names = ("bucket", "part_id", "number", "start", "end")
        return Records(*(np.concatenate([getattr(part, name) for part in (none, *parts)]) for name in names))


@dataclass(slots=True)
class KeyCollector:
    """Collects keys from index buckets, in any order."""

    table: KeyTable = field(default_factory=KeyTable)
    active: dict[int, BitMap] = field(default_factory=dict)
    _records: list[Records] = field(default_factory=list)
    _columns: list[tuple[U64s, U64s, U64s]] = field(default_factory=list)

    def take(self, stored: StoredBucket) -> None:
        """Add a bucket whose keys and ids can be relied on."""
        self.active[stored.bucket] = to_bitmap(stored.active_ids)
        for records in stored.records:
            keys = records.keys
            low, high = keys.key_hashes[:, 0].copy(), keys.key_hashes[:, 1].copy()
            assigned = self.table.assign(low, high, next_row=len(self.table), max_keys=MISSING)
            new = keys.take(assigned.new)
            metric = np.empty(len(new), dtype=np.uint64)
            hash_metrics(new.keys, new.offsets, metric)
            self._columns.append((metric, low[assigned.new], high[assigned.new]))
            bucket = np.full(len(keys), stored.bucket, dtype=np.int64)
            self._records.append(Records(bucket, keys.part_ids, assigned.rows, records.start, records.end))

    def known(self) -> "KnownKeys":
        """The keys collected so far."""
        none = np.empty(0, dtype=np.uint64)
        metric, low, high = (
            np.concatenate([none, *(part[position] for part in self._columns)]) for position in range(3)
        )
        records = Records.concatenated(self._records)
        return KnownKeys(self.table, records, self.active, metric=metric, low=low, high=high)


class KnownKeys:
    """Keys by number, their records, and their ids. `active` are the part ids that had a sample in each bucket."""

    def __init__(
        self,
        table: KeyTable,
        records: Records,
        active: dict[int, BitMap],
        *,
        metric: U64s,
        low: U64s,
        high: U64s,
    ) -> None:
        self.metric, self.low, self.high, self.active = metric, low, high, active
        self._table = table
        self._by_id = records.take(np.lexsort((records.bucket, records.part_id)))
        self._by_key = records.take(np.lexsort((records.bucket, records.number)))
        last_of_id = _last_of_runs(self._by_id.part_id)
        # By part id, in order: its newest record, and the oldest bucket with a record of it.
        self.ids = self._by_id.take(last_of_id)
        self._oldest = self._by_id.bucket[_first_of_runs(self._by_id.part_id)]

    def __len__(self) -> int:
        return len(self.metric)

    def find(self, key_low: U64s, key_high: U64s) -> U32s:
        """The number of each key, `MISSING` if no index bucket has it."""
        return self._table.find(key_low, key_high)

    def rows_of(self, part_ids: U32s) -> Rows:
        """The row in `ids` of each part id, -1 if unknown. The part ids are ascending."""
        rows = np.empty(len(part_ids), dtype=np.int64)
        rows_of_ids(self.ids.part_id, part_ids, rows)
        return rows

    def ids_with_two_keys(self) -> list[tuple[Records, Records]]:
        """Pairs of records with the same id but different keys."""
        part_id, number = self._by_id.part_id, self._by_id.number
        positions = np.flatnonzero((part_id[1:] == part_id[:-1]) & (number[1:] != number[:-1]))
        return [
            (self._by_id.take(np.array([position])), self._by_id.take(np.array([position + 1])))
            for position in positions
        ]

    def keys_with_two_ids(
        self, policy: BucketPolicy, retention: int, expired: Collection[int]
    ) -> list[tuple[int, int]]:
        """Rows in `ids`, of the older and the newer id, for keys that got a second id before the first was purged.

        `retention` is the lowest that was in force. `expired` are index buckets that can't be read any longer: the ends
        recorded in them are unknown.
        """
        order = np.lexsort((self.ids.part_id, self.ids.number))
        same = self.ids.number[order][1:] == self.ids.number[order][:-1]
        olds, news = order[:-1][same], order[1:][same]
        # Nearly all: the old id was purged before the oldest bucket with a record of the new one.
        in_time = self.ids.end[olds] < self._oldest[news] * policy.flush_interval - retention
        in_time &= self._oldest[news] > self.ids.bucket[olds]
        found = []
        for old, new in zip(olds[~in_time].tolist(), news[~in_time].tolist(), strict=True):
            ended, last_record = int(self.ids.end[old]), int(self.ids.bucket[old])
            if ended == LIVE and any(bucket > last_record for bucket in expired):
                continue
            # After a rewind, the new id's record may be in a bucket before the one with its first sample.
            first = self._first_active(int(self.ids.part_id[new]), int(self._oldest[new]))
            if ended >= first * policy.flush_interval - retention or int(self._oldest[new]) <= last_record:
                found.append((old, new))
        return found

    def unknown_active(self) -> Iterable[tuple[int, U32s]]:
        """By bucket, the active ids that have no record in any bucket; only buckets that have some."""
        known = to_bitmap(self.ids.part_id)
        for bucket, active in sorted(self.active.items()):
            if unknown := active - known:
                yield bucket, to_ids(unknown)

    def counting(self, newest_bucket: int, purged_before: int) -> Records:
        """The record of each key that a load uses, out of those up to a bucket, in order of the part ids; without the
        keys that it would purge.
        """
        records = self._by_key.take(self._by_key.bucket <= newest_bucket)
        newest = records.take(_last_of_runs(records.number))
        newest = newest.take(newest.end >= purged_before)
        return newest.take(np.argsort(newest.part_id))

    def present_in(self, bucket: int, numbers: U32s) -> Mask:
        """Which keys certainly existed throughout a bucket: live by their newest record up to it, or in a record of the
        bucket itself.
        """
        positions = _newest_up_to(self._by_key, bucket, numbers)
        present = np.zeros(len(numbers), dtype=np.bool_)
        there = positions >= 0
        end, at = self._by_key.end[positions[there]], self._by_key.bucket[positions[there]]
        present[there] = (end == LIVE) | (at == bucket)
        return present

    def id_of(self, number: int) -> int:
        """The row in `ids` of the newest id of a key."""
        rows = np.flatnonzero(self.ids.number == number)
        return int(rows[np.argmax(self.ids.bucket[rows])])

    def has_record(self, bucket: I64s, part_id: U32s, number: U32s) -> Mask:
        """Whether the given bucket has a record with the given id for the key with the given number."""
        there, wanted = _paired(self._by_id.part_id, self._by_id.bucket), _paired(part_id, bucket)
        if len(there) == 0:
            return np.zeros(len(wanted), dtype=np.bool_)
        positions = np.minimum(np.searchsorted(there, wanted), len(there) - 1)
        has: Mask = (there[positions] == wanted) & (self._by_id.number[positions] == number)
        return has

    def _first_active(self, part_id: int, otherwise: int) -> int:
        return min((bucket for bucket, active in self.active.items() if part_id in active), default=otherwise)


def _newest_up_to(by_key: Records, bucket: int, numbers: U32s) -> Rows:
    """The position of the newest record up to a bucket of each key, -1 if there is none."""
    if len(by_key) == 0:
        return np.full(len(numbers), -1, dtype=np.int64)
    positions = _paired(by_key.number, by_key.bucket)
    found = np.searchsorted(positions, _paired(numbers, np.full(len(numbers), bucket)), side="right") - 1
    return np.where((found >= 0) & (by_key.number[found] == numbers), found, -1)


def _paired(first: U32s, bucket: I64s) -> U64s:
    """Numbers with the same order as the pairs. Buckets have 31 bits: the columns of an index hold no more."""
    paired: U64s = (first.astype(np.uint64) << np.uint64(32)) | bucket.astype(np.uint64)
    return paired


def _last_of_runs(column: npt.NDArray[np.uint32]) -> Rows:
    return np.flatnonzero(np.append(column[1:] != column[:-1], [True] * bool(len(column))))


def _first_of_runs(column: npt.NDArray[np.uint32]) -> Rows:
    return np.flatnonzero(np.append([True] * bool(len(column)), column[1:] != column[:-1]))
