"""The index of one shard: key table, columns, documents and time buckets, kept in step.

Records flow in as decoded columns; frozen buckets flow out to be stored. One thread calls it. What it decides at a cut
are the pure functions of `bucket_rules`; here they are applied in their order.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from pyroaring import BitMap

from strandline.arrays import I64s, Rows, U32s, U64s, run_lengths
from strandline.errors import Fatal
from strandline.index import bucket_rules
from strandline.index.bitmaps import to_bitmap, to_ids
from strandline.index.bucket_codec import EncodedBucket, encode_bucket
from strandline.index.cut_snapshot import CutSnapshot
from strandline.index.documents import PartKeyBatch
from strandline.index.kernels.observe import observe
from strandline.index.key_documents import KeyDocuments
from strandline.index.key_summary import KeySummary, PartKeyBytes
from strandline.index.key_table import MISSING, Assigned, KeyTable
from strandline.index.new_keys import new_key_batch
from strandline.index.part_columns import PartColumns, PartRows
from strandline.index.policy import BucketPolicy
from strandline.index.time_bucket import FrozenBucket, OpenBucket
from strandline.wire.columns import Columns


class OutOfPartIds(Fatal):
    """A shard has given out every part id that there is."""


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What became of a decoded batch.

    `numbers` has for each series row its key's number among the keys with a sample in the open bucket, `MISSING` if the
    series was refused or has no sample. `newly_active` are the rows whose keys got the next numbers, in their order.
    Beside that, how many keys are new to the index, and how many rows the series limit refused.
    """

    numbers: U32s
    newly_active: Rows
    new_keys: int
    refused: int


@dataclass(frozen=True, slots=True)
class SummaryResult:
    """What became of a summary: how many keys are new to the index, and how many the series limit refused."""

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
        self._purged: dict[int, BitMap] = {}

    def take(self, batch: Columns) -> BatchResult:
        """Let the samples of a decoded batch count for their keys, in the open bucket."""
        numbers = np.full(len(batch.record), MISSING, dtype=np.uint32)
        given = np.flatnonzero(run_lengths(batch.first_sample))  # A series without a sample is no key.
        if len(given) == 0:
            return BatchResult(numbers, given, 0, 0)
        low, high = batch.key_low, batch.key_high
        if len(given) < len(numbers):
            low, high = low[given], high[given]
        assigned = self._assign(low, high)
        if len(assigned.new):
            rows = given[assigned.new]
            part_ids = self._add_keys(low[assigned.new], high[assigned.new], batch.metric[rows])
            self._documents.add(new_key_batch(batch, rows, part_ids))
        numbers[given], newly_active = self._observe(assigned.rows, *_least_and_greatest(batch, given))
        return BatchResult(numbers, given[newly_active], len(assigned.new), assigned.refused)

    def take_summary(self, summary: KeySummary, part_keys: Callable[[Rows], PartKeyBytes]) -> SummaryResult:
        """Let the records of the open bucket count that somebody else has read, by what they say of their keys.

        New keys get their ids in the order in which a reader of the records meets them, and only of those the bytes
        are asked for; if that fails nothing has changed. The outcome is the same as if the records had been taken.
        """
        order = summary.first_seen_order()
        met = summary.take(order)
        # Asked before anything changes: they may lie in a store that does not answer.
        unassigned = self.table.unassigned(met.key_low, met.key_high, max_keys=self._series_limit)
        found = part_keys(order[unassigned]) if len(unassigned) else None
        assigned = self._assign(met.key_low, met.key_high)
        if found is not None:
            new = met.take(assigned.new)
            part_ids = self._add_keys(new.key_low, new.key_high, new.metric)
            hashes = np.column_stack((new.key_low, new.key_high))
            self._documents.add(PartKeyBatch(part_ids, hashes, found.offsets, found.keys))
        self._observe(assigned.rows, met.least, met.greatest)
        return SummaryResult(len(assigned.new), assigned.refused)

    def cut(self) -> FrozenBucket:
        """Close the open bucket and open the next one; what is to be stored of the closed one, as of now."""
        closed = self.open
        bucket, keys, policy = closed.bucket, self.columns.rows, self.policy
        self.open = OpenBucket(bucket + 1)
        self._active[bucket] = closed.active
        ended = bucket_rules.ended_keys(keys, bucket, policy)
        self.columns.end(ended)
        going = bucket_rules.keys_to_purge(keys, bucket, policy)
        rolled_over = bucket_rules.keys_to_roll_over(keys, bucket, policy, self._expires_at, self._superseded)
        self._superseded = frozenset()
        changed = ended | (rolled_over & ~going)
        changed[keys.rows_of(to_ids(closed.changed))] = True
        keys.newest[changed] = bucket
        active = keys.active_in == bucket
        frozen = FrozenBucket(
            bucket,
            keys.part_id[changed],
            keys.start[changed],
            keys.end[changed],
            keys.part_id[active],
            keys.last[active],
        )
        self._unstored.append(frozen)
        self._purge(np.flatnonzero(going))
        return frozen

    def snapshot(self) -> CutSnapshot:
        """What the index knows as of the last cut, for the local copy: to be taken before the next batch is."""
        if self.open.changed or self.open.active:
            raise ValueError(f"bucket {self.open.bucket} has samples: it is too late for a snapshot of the one before")
        bucket = self.open.bucket - 1
        # Those that are left once the bucket is stored, whatever is still kept until then.
        kept = {one: active for one, active in self._active.items() if one > bucket - self.policy.kept_buckets}
        keys = self.columns.rows
        return CutSnapshot(bucket, self.next_part_id, self.policy.retention, keys.take(keys.present()), kept)

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
        self._drop_buckets(frozen.bucket)
        self._delete_purged_documents(frozen.bucket)

    def restore(self, table: KeyTable, columns: PartColumns, active: dict[int, BitMap], expiry: dict[int, int]) -> None:
        """Take over what was loaded, in place of the emptiness that a new index begins with; then purge as of the
        bucket before the open one.
        """
        bucket = self.open.bucket - 1
        # After a rewind there are buckets from the open one on, which will be filled again.
        active = {one: who for one, who in active.items() if one <= bucket}
        np.minimum(columns.rows.active_in, bucket, out=columns.rows.active_in)
        self.table, self.columns, self._active, self._expiry = table, columns, active, expiry
        self._purge(np.flatnonzero(bucket_rules.keys_to_purge(columns.rows, bucket, self.policy)))
        self._drop_buckets(bucket)
        self._delete_purged_documents(bucket)

    def supersede(self, buckets: Iterable[int]) -> None:
        """Say that stored buckets were superseded by a rewind: records in them are written again at the next cut."""
        self._superseded |= frozenset(buckets)

    def has_purged_documents(self) -> bool:
        """Whether keys were purged whose documents are still there. Any thread may ask."""
        return bool(self._purged)

    def active_in(self, bucket: int) -> BitMap:
        """Who had a sample in a bucket that is kept, or in the open one."""
        return BitMap(self.open.active if bucket == self.open.bucket else self._active.get(bucket, BitMap()))

    def _assign(self, low: U64s, high: U64s) -> Assigned:
        columns = self.columns
        return self.table.assign(low, high, next_row=len(columns), max_keys=self._series_limit, columns=columns.rows)

    def _add_keys(self, low: U64s, high: U64s, metric: U64s) -> U32s:
        """Give new keys their ids, in this order. Their documents are the caller's to add."""
        if self.next_part_id + len(low) > MISSING:
            raise OutOfPartIds(
                f"part id {self.next_part_id} and {len(low)} more do not fit into 32 bits",
                remedy="Move the dataset to more partitions: ids are never used again",
            )
        part_ids = np.arange(self.next_part_id, self.next_part_id + len(low), dtype=np.uint32)
        self.columns.append(PartRows.new_keys(part_ids, low, high, metric))
        self.next_part_id += len(low)
        self.open.changed |= to_bitmap(part_ids)
        return part_ids

    def _observe(self, rows: U32s, least: I64s, greatest: I64s) -> tuple[U32s, Rows]:
        """Let samples count for rows of the columns (`MISSING` for none): the number of each among the keys with a
        sample in the open bucket, and the places of those that had their first.
        """
        keys = self.columns.rows
        numbers, changed = np.empty(len(rows), dtype=np.uint32), np.empty(len(rows), dtype=np.uint32)
        newly_active = np.empty(len(rows), dtype=np.int64)
        n_active, n_changed, n_resumed = observe(
            rows,
            least,
            greatest,
            self.open.bucket,
            len(self.open.active),
            (keys.start, keys.last, keys.end, keys.active_in, keys.number),
            numbers,
            changed,
            newly_active,
        )
        self.columns.resume(n_resumed)
        newly_active = newly_active[:n_active]
        self.open.changed |= to_bitmap(keys.part_id[changed[:n_changed]])
        self.open.active |= to_bitmap(keys.part_id[rows[newly_active]])
        return numbers, newly_active

    def _expires_at(self, bucket: int) -> int:
        return self._expiry.get(bucket, self.policy.expected_expiry(bucket))

    def _purge(self, going: Rows) -> None:
        """Let keys go, as of the cut of the bucket before the open one: from now on a sample of theirs begins a new
        key. Their documents stay for a while.
        """
        if len(going) == 0:
            return
        keys = self.columns.rows
        self._purged[self.open.bucket - 1] = to_bitmap(keys.part_id[going])
        self.table.remove(keys.key_low[going], keys.key_high[going])
        self.columns.remove(going)
        if (moved := self.columns.squeeze()) is not None:
            self.table.renumber(moved)

    def _drop_buckets(self, newest: int) -> None:
        self._active = {one: who for one, who in self._active.items() if one > newest - self.policy.kept_buckets}

    def _delete_purged_documents(self, up_to: int) -> None:
        for bucket in [one for one in self._purged if one <= up_to]:
            self._documents.delete(self._purged.pop(bucket))


def _least_and_greatest(batch: Columns, rows: Rows) -> tuple[I64s, I64s]:
    """The least and greatest sample time of each of these rows, which all have samples."""
    first = batch.first_sample[rows]
    if len(batch.time) == len(rows):
        return batch.time, batch.time
    return np.minimum.reduceat(batch.time, first), np.maximum.reduceat(batch.time, first)
