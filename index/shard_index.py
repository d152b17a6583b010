"""The index of one shard: key table, columns, documents and time buckets, kept in step.

Records flow in as decoded columns; frozen buckets flow out to be stored. One thread calls it. What it decides at a cut
are the pure functions of `bucket_rules`; here they are applied in their order.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from pyroaring import BitMap

from strandline.arrays import I64s, Rows, U32s
from strandline.index import bucket_rules
from strandline.index.bitmaps import to_bitmap, to_ids
from strandline.index.bucket_codec import EncodedBucket, encode_bucket
from strandline.index.cut_snapshot import CutSnapshot
from strandline.index.kernels.observe import observe
from strandline.index.key_documents import KeyDocuments
from strandline.index.key_table import MISSING, KeyTable
from strandline.index.new_keys import new_key_batch
from strandline.index.part_columns import PartColumns
from strandline.index.policy import BucketPolicy
from strandline.index.time_bucket import FrozenBucket, OpenBucket
from strandline.wire.columns import Columns


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a decoded batch: the part id of each series row (`MISSING` if refused or without a sample), how
    many keys are new, and how many rows the series limit refused.
    """

    part_ids: U32s
    new_keys: int
    refused: int


class ShardIndex:
    """The index of one shard, with one bucket open."""

    def __init__(
        self, policy: BucketPolicy, documents: KeyDocuments, *, open_bucket: int, next_part_id: int, series_limit: int
    ) -> None:
        self.policy = policy
        self.columns = PartColumns()
        self.table = KeyTable()
        self.next_part_id = next_part_id
        self.open = OpenBucket(open_bucket)
        self._documents = documents
        self._series_limit = series_limit
        # Who was active in buckets that are kept; frozen buckets that are not stored yet, oldest first; when each
        # stored one expires.
        self._active: dict[int, BitMap] = {}
        self._unstored: list[FrozenBucket] = []
        self._expiry: dict[int, int] = {}
        self._superseded: frozenset[int] = frozenset()
        # By the bucket at whose cut they went: keys that are gone but for their documents. That bucket may name them,
        # and the local copy of the bucket before has them; later buckets know nothing of them.
        self._forgotten: dict[int, BitMap] = {}

    def take(self, batch: Columns) -> Taken:
        """Let the samples of a decoded batch count for their keys, in the open bucket."""
        part_ids = np.full(len(batch.record), MISSING, dtype=np.uint32)
        rows = np.flatnonzero(np.diff(batch.first_sample))  # A series without a sample is no key.
        if len(rows) == 0:
            return Taken(part_ids, 0, 0)
        low, high = batch.key_low[rows], batch.key_high[rows]
        assigned = self.table.assign(low, high, next_id=self.next_part_id, most=self._series_limit)
        part_ids[rows] = assigned.part_ids
        if len(assigned.new_rows):
            new_rows = rows[assigned.new_rows]
            new_ids = part_ids[new_rows]
            self._documents.add(new_key_batch(batch, new_rows, part_ids))
            self.columns.begin(new_ids, batch.key_low[new_rows], batch.key_high[new_rows], batch.metric[new_rows])
            self.next_part_id += len(new_rows)
            self.open.changed |= to_bitmap(new_ids)
        self._observe(assigned.part_ids, *_least_and_greatest(batch, rows))
        return Taken(part_ids, len(assigned.new_rows), assigned.refused)

    def cut(self) -> FrozenBucket:
        """Close the open bucket and open the next one; what is to be stored of the closed one, as of now."""
        closed = self.open
        self.open = OpenBucket(closed.bucket + 1)
        self._active[closed.bucket] = closed.active
        columns = self.columns
        newest = range(closed.bucket - self.policy.live_buckets + 1, closed.bucket + 1)
        ended = bucket_rules.ended_keys(columns, [self._active[one] for one in newest if one in self._active])
        ended_ids = to_ids(ended)
        columns.end[ended_ids] = columns.last[ended_ids]
        going = bucket_rules.keys_to_purge(columns, closed.bucket, self.policy)
        rolled_over = bucket_rules.keys_to_roll_over(
            columns, closed.bucket, self.policy, self._expires_at, self._superseded
        )
        self._superseded = frozenset()
        changed_ids = to_ids(closed.changed | ended | (rolled_over - going))
        columns.newest[changed_ids] = closed.bucket
        active_ids = to_ids(closed.active)
        frozen = FrozenBucket(
            closed.bucket,
            changed_ids,
            columns.start[changed_ids],
            columns.end[changed_ids],
            active_ids,
            columns.last[active_ids],
        )
        self._unstored.append(frozen)
        self._forget(going)
        return frozen

    def snapshot(self) -> CutSnapshot:
        """What the index knows as of the last cut, for the local copy: to be taken before the next batch is."""
        if self.open.changed or self.open.active:
            raise ValueError(f"bucket {self.open.bucket} has samples: it is too late for a snapshot of the one before")
        bucket = self.open.bucket - 1
        # Those that are left once the bucket is stored, whatever is still kept until then.
        kept = {one: active for one, active in self._active.items() if one > bucket - self.policy.kept_buckets}
        return CutSnapshot.of(
            self.columns,
            bucket=bucket,
            next_part_id=self.next_part_id,
            retention=self.policy.retention,
            active=kept,
        )

    def encode(self, frozen: FrozenBucket) -> EncodedBucket:
        """The rows of a frozen bucket. Its keys are still there: none that it names is purged before it is stored."""
        return encode_bucket(frozen, lambda part_ids: self._documents.fetch(to_bitmap(part_ids)))

    def stored(self, frozen: FrozenBucket, expires: int) -> None:
        """Say that a bucket is stored and when it expires. Buckets that are no longer needed are dropped, and the
        documents of keys that went at its cut.
        """
        if self._unstored[0] is not frozen:
            raise ValueError(f"bucket {frozen.bucket} was stored before bucket {self._unstored[0].bucket}")
        del self._unstored[0]
        self._expiry[frozen.bucket] = expires
        for bucket in [one for one in self._active if one <= frozen.bucket - self.policy.kept_buckets]:
            del self._active[bucket]
        self._delete_forgotten(frozen.bucket)

    def restore(self, table: KeyTable, columns: PartColumns, active: dict[int, BitMap], expiry: dict[int, int]) -> None:
        """Take over what was loaded, in place of the emptiness that a new index begins with; then purge as of the
        bucket before the open one.
        """
        self.table, self.columns, self._active, self._expiry = table, columns, active, expiry
        self._forget(bucket_rules.keys_to_purge(columns, self.open.bucket - 1, self.policy))
        self._delete_forgotten(self.open.bucket - 1)

    def supersede(self, buckets: Iterable[int]) -> None:
        """Say that stored buckets were superseded by a rewind: records in them are written again at the next cut."""
        self._superseded |= frozenset(buckets)

    def active_in(self, bucket: int) -> BitMap:
        """Who had a sample in a bucket that is kept, or in the open one."""
        return BitMap(self.open.active if bucket == self.open.bucket else self._active.get(bucket, BitMap()))

    def _observe(self, part_ids: U32s, least: I64s, greatest: I64s) -> None:
        columns = self.columns
        changed = np.empty(len(part_ids), dtype=np.uint32)
        n_changed = observe(part_ids, least, greatest, columns.start, columns.last, columns.end, changed)
        self.open.changed |= to_bitmap(changed[:n_changed])
        self.open.active |= to_bitmap(part_ids[part_ids != MISSING])

    def _expires_at(self, bucket: int) -> int:
        return self._expiry.get(bucket, self.policy.expected_expiry(bucket))

    def _forget(self, going: BitMap) -> None:
        """Let keys go, as of the cut of the bucket before the open one: from now on a sample of theirs begins a new
        key. Their documents stay for a while.
        """
        ids = to_ids(going)
        self.table.remove(self.columns.key_low[ids], self.columns.key_high[ids])
        self.columns.forget(ids)
        if going:
            self._forgotten[self.open.bucket - 1] = going

    def _delete_forgotten(self, up_to: int) -> None:
        for bucket in [one for one in self._forgotten if one <= up_to]:
            self._documents.delete(self._forgotten.pop(bucket))


def _least_and_greatest(batch: Columns, rows: Rows) -> tuple[I64s, I64s]:
    """The least and greatest sample time of each of these rows, which all have samples."""
    first = batch.first_sample[rows]
    if len(batch.time) == len(rows):
        return batch.time, batch.time
    return np.minimum.reduceat(batch.time, first), np.maximum.reduceat(batch.time, first)
