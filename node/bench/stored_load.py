"""Writes stored samples without a shard: the segments, index buckets and rows that a shard would write."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from strandline.arrays import F64s, I64s, U64s, run_offsets
from strandline.index.bucket_codec import encode_bucket
from strandline.index.documents import PartKeyBatch
from strandline.index.kernels.part_keys import hash_metrics, hash_part_keys
from strandline.index.part_columns import LIVE
from strandline.index.time_bucket import FrozenBucket
from strandline.recovery.checkpoints import designated_group
from strandline.store.group_write import encode_group
from strandline.store.protocol import Store
from strandline.store.rows import (
    CutRow,
    DatasetShape,
    GroupRow,
    IndexBucketOf,
    IndexBucketRows,
    Lifetime,
    ManifestWrite,
    Ownership,
    SegmentsOf,
    ShardId,
)
from strandline.store.series_run import SeriesRun


@dataclass(frozen=True, slots=True)
class StoredKeys:
    """The part keys of a shard. The index of each is its part id."""

    batch: PartKeyBatch
    metric: U64s

    @classmethod
    def of(cls, part_keys: list[bytes]) -> "StoredKeys":
        """These keys, with their hashes."""
        batch = PartKeyBatch.of(range(len(part_keys)), [(0, 0)] * len(part_keys), part_keys)
        low, high = (np.empty(len(part_keys), dtype=np.uint64) for _ in range(2))
        metric = np.empty(len(part_keys), dtype=np.uint64)
        hash_part_keys(batch.keys, batch.offsets, low, high)
        hash_metrics(batch.keys, batch.offsets, metric)
        hashed = PartKeyBatch(batch.part_ids, np.stack([low, high], axis=1), batch.offsets, batch.keys)
        return cls(hashed, metric)


@dataclass(slots=True)
class StoredLoad:
    """Writes buckets of the shards of a dataset, as the owner of each."""

    store: Store
    shape: DatasetShape
    present: int
    data_life: int = 30 * 86_400_000
    _owners: dict[int, Ownership] = field(default_factory=dict)
    _ends: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store.create_dataset(self.shape)

    def begin(self, shard: int, bucket: int) -> None:
        """Begin a shard whose first bucket follows this one."""
        where = ShardId(self.shape.dataset, shard)
        owner = self.store.take(where, f"load-{shard}", None, now=self.present, topic_id="load")
        if owner is None:
            raise RuntimeError(f"{where} is owned already")
        self._owners[shard], self._ends[shard] = owner, 0
        cut = CutRow(bucket, 0, 0, self.present + 2 * self.data_life, reset=True)
        self.store.commit(owner, ManifestWrite(cuts=(cut,), present=self.present))

    def write(
        self,
        shard: int,
        bucket: int,
        keys: StoredKeys,
        columns: tuple[I64s, I64s, F64s],
        *,
        new: Mapping[int, int] | None = None,
        attempt: str = "a",
    ) -> list[GroupRow]:
        """Store a bucket. The samples are unsorted columns of key numbers, times and values. `new` has the keys that
        are written to the index bucket, with the start of each; by default all of the bucket's keys. Returns the rows.
        """
        number, time, value = columns
        where, life = ShardId(self.shape.dataset, shard), Lifetime.from_present(self.present, self.data_life)
        index = self._write_index(IndexBucketOf(where, bucket, attempt), keys, (number, time), new)
        groups = (keys.metric[number] % np.uint64(self.shape.groups)).astype(np.int64)
        rows: list[GroupRow] = []
        for group in range(self.shape.groups):
            of_group = groups == group
            run = _run(keys, number[of_group], time[of_group], value[of_group])
            written = encode_group(run, bucket, group, attempt, self.shape.flush_interval)
            self.store.write_segments(SegmentsOf(where, bucket, group, attempt), written.segments, life)
            rows.append(
                written.stored.row(
                    bucket,
                    attempt,
                    expires=self.present + 2 * self.data_life,
                    data_expires=life.expires,
                    written_by="load",
                    written_at=self.present,
                    index=index if group == designated_group(where, self.shape.groups) else None,
                )
            )
        start = self._ends[shard]
        self._ends[shard] = start + 1
        cut = CutRow(bucket, start, start + 1, self.present + 2 * self.data_life)
        self.store.commit(self._owners[shard], ManifestWrite(cuts=(cut,), groups=tuple(rows), present=self.present))
        return rows

    def commit(self, shard: int, *rows: GroupRow) -> None:
        """Write changed rows."""
        self.store.commit(self._owners[shard], ManifestWrite(groups=rows, present=self.present))

    def _write_index(
        self, where: IndexBucketOf, keys: StoredKeys, samples: tuple[I64s, I64s], new: Mapping[int, int] | None
    ) -> IndexBucketRows:
        number, time = samples
        active = np.unique(number)
        first, last = (np.full(len(keys.metric), bound) for bound in (LIVE, -LIVE))
        np.minimum.at(first, number, time)
        np.maximum.at(last, number, time)
        starts = {int(one): int(first[one]) for one in active} if new is None else dict(new)
        recorded = np.array(sorted(starts), dtype=np.uint32)
        frozen = FrozenBucket(
            where.bucket,
            recorded,
            np.array([starts[int(one)] for one in recorded], dtype=np.int64),
            np.full(len(recorded), LIVE),
            active.astype(np.uint32),
            last[active],
        )
        encoded = encode_bucket(frozen, lambda ids: keys.batch.take(ids.astype(np.int64)))
        life = Lifetime.from_present(self.present, self.data_life)
        self.store.write_index_bucket(where, encoded.rows, life)
        return IndexBucketRows(len(encoded.rows), encoded.checksum, where.attempt)


def _run(keys: StoredKeys, number: I64s, time: I64s, value: F64s) -> SeriesRun:
    hashes = keys.batch.key_hashes
    low, high, metric = hashes[number, 0], hashes[number, 1], keys.metric[number]
    order = np.lexsort((time, low, high, metric))
    number = number[order]
    firsts = np.flatnonzero(np.diff(number, prepend=-1))
    counts = np.diff(np.append(firsts, len(number)))
    kept = order[firsts]
    return SeriesRun(metric[kept], high[kept], low[kept], run_offsets(counts), time[order], value[order])
