"""From stored buckets back to an index: the newest bucket first, and the first record of a key wins."""

from collections.abc import Iterable, Mapping

import numpy as np
from pyroaring import BitMap

from strandline.arrays import I64s
from strandline.index.bitmaps import to_bitmap
from strandline.index.bucket_codec import StoredBucket, StoredRecords
from strandline.index.kernels.part_keys import hash_metrics
from strandline.index.key_documents import KeyDocuments
from strandline.index.key_table import KeyTable
from strandline.index.part_columns import ABSENT, LIVE, PartColumns
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
) -> ShardIndex:
    """The index as it was when the newest of these buckets had been stored.

    Every unexpired bucket has to be among them, not just as many as the retention of today asks for; `expiry` says when
    each expires. `documents` is empty and gets the keys.
    """
    load = _Load(documents)
    for stored in newest_first:
        load.bucket(stored)
    load.settle_last_samples()
    index = ShardIndex(policy, documents, open_bucket=open_bucket, next_part_id=next_part_id, series_limit=series_limit)
    index.restore(load.table, load.columns, load.active, dict(expiry))
    return index


class _Load:
    """What has been gathered so far."""

    def __init__(self, documents: KeyDocuments) -> None:
        self.table = KeyTable()
        self.columns = PartColumns()
        self.active: dict[int, BitMap] = {}
        self._documents = documents
        self._last: I64s = np.empty(0, dtype=np.int64)

    def bucket(self, stored: StoredBucket) -> None:
        """Take what no newer bucket has said already."""
        for records in stored.records:
            self._records(stored.bucket, records)
        self.active[stored.bucket] = to_bitmap(stored.active_ids)
        if len(stored.active_ids):
            missing = int(stored.active_ids[-1]) + 1 - len(self._last)
            if missing > 0:
                self._last = np.pad(self._last, (0, missing), constant_values=ABSENT)
            unknown = self._last[stored.active_ids] == ABSENT
            self._last[stored.active_ids[unknown]] = stored.last[unknown]

    def settle_last_samples(self) -> None:
        """Give each key its greatest sample time. One that no bucket names as active has its end or its start."""
        columns = self.columns
        columns.last[:] = np.where(columns.end == LIVE, columns.start, columns.end)
        known = min(len(self._last), len(columns))
        have = self._last[:known] != ABSENT
        columns.last[:known][have] = self._last[:known][have]

    def _records(self, bucket: int, records: StoredRecords) -> None:
        hashes = records.keys.key_hashes
        # By key, not by id: a key that was purged and came back has another id, and only its newer one counts.
        new = self.table.insert(hashes[:, 0].copy(), hashes[:, 1].copy(), records.keys.part_ids)
        keys = records.keys.take(np.flatnonzero(new))
        if len(keys) == 0:
            return
        metric = np.empty(len(keys), dtype=np.uint64)
        hash_metrics(keys.keys, keys.offsets, metric)
        self.columns.begin(keys.part_ids, hashes[new, 0], hashes[new, 1], metric)
        self.columns.start[keys.part_ids] = records.start[new]
        self.columns.end[keys.part_ids] = records.end[new]
        self.columns.newest[keys.part_ids] = bucket
        self._documents.add(keys)
