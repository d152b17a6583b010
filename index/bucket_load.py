"""Loads an index from stored buckets: the newest bucket first, and the first record of a key counts.

A local copy represents all buckets up to its own. It is loaded after the newer buckets, as if it were one older bucket.
Buckets that a rewind has superseded are loaded last, only for keys that nothing else has: whatever was written again
since takes precedence. They are newer than the bucket as of which the index is loaded. A key that was purged in them
and came back has two ids there, and the older one is the key's id at the cut.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from strandline.arrays import I64s, Rows, U32s
from strandline.index.bitmaps import to_bitmap, to_ids
from strandline.index.bucket_codec import StoredBucket, StoredRecords
from strandline.index.cut_snapshot import CutSnapshot
from strandline.index.documents import PartKeyBatch
from strandline.index.kernels.part_keys import hash_metrics
from strandline.index.kernels.rows import rows_of_ids
from strandline.index.key_documents import KeyDocuments
from strandline.index.key_table import MISSING, KeyTable
from strandline.index.part_columns import LIVE, PartColumns, PartRows
from strandline.index.policy import BucketPolicy
from strandline.index.shard_index import ShardIndex


def load_index(
    policy: BucketPolicy,
    documents: KeyDocuments,
    newest_first: Iterable[StoredBucket],
    expiry: Mapping[int, int],
    *,
    open_bucket: int,
    next_part_id: int,
    series_limit: int,
    copy: CutSnapshot | None = None,
    copy_table: KeyTable | None = None,
    superseded: Iterable[StoredBucket] = (),
) -> ShardIndex:
    """Return the index as it was when the newest of these buckets had been stored.

    All unexpired buckets must be included, not only as many as the current retention requires, or all that are newer
    than the copy; `expiry` has the expiry of each. `superseded` are those that a rewind has superseded, also newest
    first. `documents` contains the copy's documents, or none, and gets the others. `copy_table`, if it was made
    already, has each key of the copy with its row; it is modified.
    """
    load = _Load(documents, to_bitmap(copy.keys.part_id) if copy is not None else BitMap())
    for stored in newest_first:
        load.bucket(stored)
    if copy is not None:
        load.copy(copy, copy_table)
    named = load.length
    for stored in superseded:
        load.superseded(stored, named)
    table, columns = load.finish()
    index = ShardIndex(policy, documents, open_bucket=open_bucket, next_part_id=next_part_id, series_limit=series_limit)
    index.restore(table, columns, load.active, dict(expiry))
    return index


class _Load:
    """The state of a load."""

    def __init__(self, documents: KeyDocuments, documented: BitMap) -> None:
        """`documented` are the part ids that already have a document."""
        self.active: dict[int, BitMap] = {}
        self._documents = documents
        self._documented = documented
        self._table = KeyTable(len(documented))
        self._keys: list[PartRows] = []
        self._activity = _Activity()

    def bucket(self, stored: StoredBucket) -> None:
        """Add what no newer bucket has."""
        for records in stored.records:
            self._records(stored.bucket, records)
        self.active[stored.bucket] = to_bitmap(stored.active_ids)
        newest = np.full(len(stored.active_ids), stored.bucket, dtype=np.int32)
        self._activity.add(self.active[stored.bucket], stored.active_ids, stored.last, newest)

    def superseded(self, stored: StoredBucket, named: int) -> None:
        """Add keys that nothing has yet, but not their activity: their samples will be read again. The first `named`
        keys are those of valid buckets, or of the copy.

        A key that a newer superseded bucket has under another id gets the id in this bucket: buckets up to the cut list
        this id as active, and the newer one is assigned when the key is purged and comes back again.
        """
        given = np.concatenate([np.empty(0, dtype=np.uint32), *(part.part_id for part in self._keys)])
        for records in stored.records:
            rows = self._records(stored.bucket, records)
            matched = np.flatnonzero((rows >= named) & (rows < len(given)))
            earlier = matched[given[rows[matched]] != records.keys.part_ids[matched]]
            if len(earlier):
                self._replace(rows[earlier], stored.bucket, records, earlier)

    def copy(self, copy: CutSnapshot, table: KeyTable | None) -> None:
        """Add what the copy has and no bucket does. A key that has another id by now loses its document."""
        keys = copy.keys
        if table is not None and not self._keys:
            self._table = table
            self._keys.append(keys.take(slice(None)))
            self._named_by(copy)
            return
        assigned = self._table.assign(keys.key_low, keys.key_high, next_row=self.length, max_keys=MISSING)
        old = np.ones(len(keys), dtype=np.bool_)
        old[assigned.new] = False
        if self._keys and old.any():
            self._keys = [PartRows.concatenated(self._keys)]
            has_other_id = self._keys[0].part_id[assigned.rows[old]] != keys.part_id[old]
            self._documents.delete(to_bitmap(keys.part_id[old][has_other_id]))
        self._keys.append(keys.take(assigned.new) if len(assigned.new) < len(keys) else keys.take(slice(None)))
        self._named_by(copy)

    def _named_by(self, copy: CutSnapshot) -> None:
        keys = copy.keys
        self._activity.add(self._documented, keys.part_id, keys.last, keys.active_in)
        self.active = dict(copy.active) | self.active

    def finish(self) -> tuple[KeyTable, PartColumns]:
        """Return the key table and the columns, with the maximum sample time of each key. That of a live key is in the
        newest bucket in which it was active; that of an ended one is its end.
        """
        if not self._keys:
            return self._table, PartColumns()
        keys = PartRows.concatenated(self._keys)
        if np.any(keys.part_id[1:] < keys.part_id[:-1]):
            order = np.argsort(keys.part_id)
            keys = keys.take(order)
            rows = np.empty(len(order), dtype=np.uint32)
            rows[order] = np.arange(len(order), dtype=np.uint32)
            self._table.renumber(rows)
        keys.last[:] = np.where(keys.end == LIVE, keys.start, keys.end)
        self._activity.apply(keys)
        return self._table, PartColumns(keys)

    @property
    def length(self) -> int:
        """The number of keys."""
        return sum(len(part) for part in self._keys)

    def _records(self, bucket: int, records: StoredRecords) -> U32s:
        """Add the keys that nothing has yet; return the row of each key."""
        hashes = records.keys.key_hashes
        # By key instead of id: a key that was purged and came back has another id, and only its newer one counts.
        assigned = self._table.assign(hashes[:, 0].copy(), hashes[:, 1].copy(), next_row=self.length, max_keys=MISSING)
        new = assigned.new
        keys = records.keys.take(new)
        if len(keys) == 0:
            return assigned.rows
        metric = np.empty(len(keys), dtype=np.uint64)
        hash_metrics(keys.keys, keys.offsets, metric)
        rows = PartRows.new_keys(keys.part_ids, hashes[new, 0], hashes[new, 1], metric)
        rows.start[:] = records.start[new]
        rows.end[:] = records.end[new]
        rows.newest[:] = bucket
        self._keys.append(rows)
        self._document(keys)
        return assigned.rows

    def _replace(self, rows: U32s, bucket: int, records: StoredRecords, indices: Rows) -> None:
        """Replace the records of keys, with other ids."""
        keys = PartRows.concatenated(self._keys)
        self._keys = [keys]
        self._documents.delete(to_bitmap(keys.part_id[rows]))
        keys.part_id[rows] = records.keys.part_ids[indices]
        keys.start[rows] = records.start[indices]
        keys.end[rows] = records.end[indices]
        keys.newest[rows] = bucket
        self._document(records.keys.take(indices))

    def _document(self, keys: PartKeyBatch) -> None:
        if self._documented:
            undocumented = to_bitmap(keys.part_ids) - self._documented
            keys = keys.take(np.flatnonzero(np.isin(keys.part_ids, to_ids(undocumented))))
        if len(keys):
            self._documents.add(keys)


class _Activity:
    """The maximum sample time of part ids and the newest bucket with a sample of theirs, added from newest to
    oldest.
    """

    def __init__(self) -> None:
        self._known = BitMap()
        self._ids: list[U32s] = []
        self._last: list[I64s] = []
        self._bucket: list[npt.NDArray[np.int32]] = []

    def add(self, active: BitMap, ids: U32s, last: I64s, bucket: npt.NDArray[np.int32]) -> None:
        """Add those that nothing newer has. `ids` are those of `active`, in ascending order."""
        unknown = to_ids(active - self._known)
        indices = np.empty(len(unknown), dtype=np.int64)
        rows_of_ids(ids, unknown, indices)
        self._known |= active
        self._ids.append(unknown)
        self._last.append(last[indices])
        self._bucket.append(bucket[indices])

    def apply(self, keys: PartRows) -> None:
        """Set `last` and `active_in`; ids that no key has any longer are skipped."""
        for ids, last, bucket in zip(self._ids, self._last, self._bucket, strict=True):
            rows = keys.rows_of(ids)
            there = rows >= 0
            keys.last[rows[there]] = last[there]
            keys.active_in[rows[there]] = bucket[there]
