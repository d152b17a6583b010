"""Counts what is lost with damaged index buckets, for the operator who has to accept it: the series in segments whose
key hashes are in no readable index bucket.

This reads every index bucket again, and the segments of damaged buckets up to a limit. It takes as long as a start
without a local copy, and only runs if a start needs an operator's decision.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from strandline.arrays import U64s
from strandline.index.bucket_codec import BucketDamaged, StoredBucket, decode_bucket, salvage_bucket
from strandline.index.key_table import MISSING, KeyTable
from strandline.recovery.keyless_series import KeylessSeries, KeylessSeriesCounter, SegmentSeries
from strandline.store.protocol import Store
from strandline.store.rows import GroupRow, IndexBucketOf, SegmentsOf, ShardId
from strandline.store.segment_codec import SegmentDamaged, decode_directory

MAX_SEGMENTS = 20_000
"""The directories of at most this many segments (1.3 GB) are read, but always those of at least one bucket."""


@dataclass(frozen=True, slots=True)
class IndexLoss:
    """The damaged buckets, newest first, and the series without a key in the segments of the first `scanned` buckets.
    `unread` of these segments can't be read either.
    """

    buckets: tuple[int, ...]
    scanned: int
    unnamed: KeylessSeries
    unread: int

    def __str__(self) -> str:
        many = len(self.buckets) > 1
        where = "its segments" if not many else f"the segments of the newest {self.scanned:,} of them"
        if self.unnamed.series:
            what = (
                f"In {where} {self.unnamed} have no key in the readable part of the index: queries don't find them"
                " until they have another sample"
            )
        else:
            what = f"All series in {where} have a key in the readable part of the index"
        damaged = f"{len(self.buckets):,} index buckets from {self.buckets[-1]} to {self.buckets[0]} are damaged. "
        unread = f". {self.unread:,} of those segments can't be read either" if self.unread else ""
        return (damaged if many else "") + what + unread


@dataclass(slots=True)
class LossSurvey:
    """Reads a shard's store to count what was lost with damaged index buckets. `on_progress` is called repeatedly and
    may raise to cancel.
    """

    store: Store
    shard: ShardId
    on_progress: Callable[[], None]

    def of(self, index_rows: Sequence[GroupRow], group_rows: Sequence[GroupRow], known: KeyTable) -> IndexLoss:
        """`index_rows` reference the expected index buckets, newest first, and `group_rows` the segments. `known` has
        the keys that are known from elsewhere; those of the buckets are added to it.
        """
        damaged = [row.bucket for row in index_rows if not self._load_keys(row, known) and not row.superseded]
        rows_of: dict[int, list[GroupRow]] = {bucket: [] for bucket in damaged}
        for row in group_rows:
            if row.bucket in rows_of and not row.superseded:
                rows_of[row.bucket].append(row)
        unnamed, unread, scanned, budget = KeylessSeriesCounter(known.find), 0, 0, MAX_SEGMENTS
        for rows in rows_of.values():
            budget -= sum(row.segments for row in rows)
            if scanned and budget < 0:
                break
            scanned += 1
            unread += sum(self._scan_segments(row, unnamed) for row in rows)
        return IndexLoss(tuple(damaged), scanned, unnamed.counted(), unread)

    def _load_keys(self, row: GroupRow, known: KeyTable) -> bool:
        """Add the keys of an index bucket to `known`. Returns whether the bucket is undamaged."""
        if row.index is None:
            return True
        data = tuple(self.store.index_bucket(IndexBucketOf(self.shard, row.bucket, row.index.attempt)))
        self.on_progress()
        try:
            stored, is_whole = decode_bucket(row.bucket, data, row.index.rows, row.index.checksum), True
        except BucketDamaged:
            stored, is_whole = salvage_bucket(row.bucket, data).bucket, False
        for low, high in _hashes(stored):
            known.assign(low, high, next_row=len(known), max_keys=MISSING)
        return is_whole

    def _scan_segments(self, row: GroupRow, unnamed: KeylessSeriesCounter) -> int:
        """Add the series of a row's segments to `unnamed`. Returns how many segments can't be read."""
        unread = 0
        for segment in self.store.segments(SegmentsOf(self.shard, row.bucket, row.group, row.attempt)):
            self.on_progress()
            try:
                directory = decode_directory(segment.data, named=segment.first.hex())
            except SegmentDamaged:
                unread += 1
                continue
            times = np.full((2, len(directory)), [[directory.least_time], [directory.greatest_time]])
            unnamed.take(SegmentSeries(directory.key_low, directory.key_high, directory.counts, times[0], times[1]))
        return unread


def _hashes(stored: StoredBucket) -> list[tuple[U64s, U64s]]:
    keys = [records.keys.key_hashes for records in stored.records]
    return [(hashes[:, 0].copy(), hashes[:, 1].copy()) for hashes in keys]
