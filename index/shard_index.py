"""The index of one shard: key table, columns, documents and time buckets, kept consistent.

In: records as decoded columns. Out: frozen buckets to be stored. For one thread. The decisions at a cut are the pure
functions of `bucket_rules`, which are applied here in order.
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
    """A shard has assigned all part ids."""


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of adding a decoded batch.

    `numbers` has for each series row its key's number among the keys with a sample in the open bucket, `MISSING` if the
    series was refused or has no sample. `newly_active` are the rows whose keys got the next numbers, in their order.
    `new_keys` is the number of keys that are new to the index, `refused` the number of rows that the series limit
    refused.
    """

    numbers: U32s
    newly_active: Rows
    new_keys: int
    refused: int


@dataclass(frozen=True, slots=True)
class SummaryResult:
    """The result of adding a summary: the number of keys that are new to the index, and that the series limit
    refused.
    """

    new_keys: int
    refused: int


class ShardIndex:
    """The index of one shard, with one open bucket."""

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
        # The active part ids of buckets that are kept; frozen buckets that are not stored yet, oldest first; the expiry
        # of each stored bucket.
        self._active: dict[int, BitMap] = {}
        self._unstored: list[FrozenBucket] = []
        self._expiry: dict[int, int] = {}
        self._superseded: frozenset[int] = frozenset()
        # Purged keys whose documents still exist, by the bucket at whose cut they were purged. That bucket may
        # reference them, and the local copy of the previous bucket has them; later buckets don't.
        self._purged: dict[int, BitMap] = {}

    def take(self, batch: Columns) -> BatchResult:
        """Add the samples of a decoded batch to their keys, in the open bucket."""
        numbers = np.full(len(batch.record), MISSING, dtype=np.uint32)
        given = np.flatnonzero(run_lengths(batch.first_sample))  # A series without samples has no key.
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
        """Add the records of the open bucket that another reader has read, by the summary of their keys.

        New keys get their ids in the order in which a reader of the records sees them, and only their bytes are
        requested; if that fails, nothing has changed. The result is the same as if the records had been added.
        """
        order = summary.first_seen_order()
        ordered = summary.take(order)
        # Requested before anything changes: the bytes may be in a store that does not answer.
        unassigned = self.table.unassigned(ordered.key_low, ordered.key_high, max_keys=self._series_limit)
        found = part_keys(order[unassigned]) if len(unassigned) else None
        assigned = self._assign(ordered.key_low, ordered.key_high)
        if found is not None:
            new = ordered.take(assigned.new)
            part_ids = self._add_keys(new.key_low, new.key_high, new.metric)
            hashes = np.column_stack((new.key_low, new.key_high))
            self._documents.add(PartKeyBatch(part_ids, hashes, found.offsets, found.keys))
        self._observe(assigned.rows, ordered.least, ordered.greatest)
        return SummaryResult(len(assigned.new), assigned.refused)

    def cut(self) -> FrozenBucket:
        """Close the open bucket and open the next one. Return what has to be stored of the closed one."""
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
        """Return the state as of the last cut, for the local copy; must be called before the next batch is added."""
        if self.open.changed or self.open.active:
            raise ValueError(
                f"bucket {self.open.bucket} already has samples, so there can be no snapshot of the previous one"
            )
        bucket = self.open.bucket - 1
        # The buckets that remain once this bucket is stored; more may be kept until then.
        kept = {one: active for one, active in self._active.items() if one > bucket - self.policy.kept_buckets}
        keys = self.columns.rows
        return CutSnapshot(bucket, self.next_part_id, self.policy.retention, keys.take(keys.present()), kept)

    def encode(self, frozen: FrozenBucket) -> EncodedBucket:
        """Encode a frozen bucket. Its keys still have documents: none is deleted before the bucket is stored."""
        return encode_bucket(frozen, lambda part_ids: self._documents.fetch(to_bitmap(part_ids)))

    def stored(self, frozen: FrozenBucket, expires: int) -> None:
        """Note that a bucket is stored and when it expires. Drop buckets that are no longer needed, and the documents
        of keys that were purged at its cut.
        """
        if self._unstored[0] is not frozen:
            raise ValueError(f"bucket {frozen.bucket} was stored before bucket {self._unstored[0].bucket}")
        del self._unstored[0]
        self._expiry[frozen.bucket] = expires
        self._drop_buckets(frozen.bucket)
        self._delete_purged_documents(frozen.bucket)

    def restore(self, table: KeyTable, columns: PartColumns, active: dict[int, BitMap], expiry: dict[int, int]) -> None:
        """Replace the empty state of a new index by what was loaded; then purge as of the bucket before the
        open one.
        """
        bucket = self.open.bucket - 1
        # After a rewind there are buckets from the open one, which will be filled again.
        active = {one: ids for one, ids in active.items() if one <= bucket}
        np.minimum(columns.rows.active_in, bucket, out=columns.rows.active_in)
        self.table, self.columns, self._active, self._expiry = table, columns, active, expiry
        self._purge(np.flatnonzero(bucket_rules.keys_to_purge(columns.rows, bucket, self.policy)))
        self._drop_buckets(bucket)
        self._delete_purged_documents(bucket)

    def supersede(self, buckets: Iterable[int]) -> None:
        """Note that a rewind has superseded stored buckets: their records are written again at the next cut."""
        self._superseded |= frozenset(buckets)

    def has_purged_documents(self) -> bool:
        """Whether purged keys still have documents. Thread-safe."""
        return bool(self._purged)

    def active_in(self, bucket: int) -> BitMap:
        """The keys with a sample in a bucket that is kept, or in the open one."""
        return BitMap(self.open.active if bucket == self.open.bucket else self._active.get(bucket, BitMap()))

    def _assign(self, low: U64s, high: U64s) -> Assigned:
        columns = self.columns
        return self.table.assign(low, high, next_row=len(columns), max_keys=self._series_limit, columns=columns.rows)

    def _add_keys(self, low: U64s, high: U64s, metric: U64s) -> U32s:
        """Assign ids to new keys, in this order. The caller adds their documents."""
        if self.next_part_id + len(low) > MISSING:
            raise OutOfPartIds(
                f"{len(low)} part ids from {self.next_part_id} do not fit into 32 bits",
                remedy="Move the dataset to more partitions: ids are never used again",
            )
        part_ids = np.arange(self.next_part_id, self.next_part_id + len(low), dtype=np.uint32)
        self.columns.append(PartRows.new_keys(part_ids, low, high, metric))
        self.next_part_id += len(low)
        self.open.changed |= to_bitmap(part_ids)
        return part_ids

    def _observe(self, rows: U32s, least: I64s, greatest: I64s) -> tuple[U32s, Rows]:
        """Apply samples to rows of the columns (`MISSING` for none). Return the number of each among the keys with a
        sample in the open bucket, and the indices of those that had their first.
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
        """Purge keys, as of the cut of the bucket before the open one: a later sample of theirs begins a new key. Their
        documents are deleted later.
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
        self._active = {one: ids for one, ids in self._active.items() if one > newest - self.policy.kept_buckets}

    def _delete_purged_documents(self, up_to: int) -> None:
        for bucket in [one for one in self._purged if one <= up_to]:
            self._documents.delete(self._purged.pop(bucket))


def _least_and_greatest(batch: Columns, rows: Rows) -> tuple[I64s, I64s]:
    """Return the minimum and maximum sample time of each of these rows, which all have samples."""
    first = batch.first_sample[rows]
    if len(batch.time) == len(rows):
        return batch.time, batch.time
    return np.minimum.reduceat(batch.time, first), np.maximum.reduceat(batch.time, first)
