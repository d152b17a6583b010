"""Resolves a selector to series with the stored index buckets, without a node.

Every pinned index bucket is read, newest first. A key's end is that of its first record, and its start the minimum of
all records. Only matching series are kept in memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from strandline.arrays import I64s, U32s, U64s
from strandline.index.bucket_codec import StoredRecords, decode_bucket
from strandline.index.kernels.part_keys import hash_metrics
from strandline.index.key_table import MISSING, KeyTable
from strandline.index.matchers import Matcher
from strandline.jobs.reading.matching import check_matchers, match_keys
from strandline.jobs.reading.pins import PinnedIndex, Pins
from strandline.jobs.reading.series_set import LabelBytes, SeriesSet
from strandline.store.protocol import Store
from strandline.store.rows import IndexBucketOf, ShardId


@dataclass(frozen=True, slots=True)
class ResolvedSeries:
    """The matching series, and the number of all series by shard and group."""

    series: SeriesSet
    known: dict[tuple[int, int], int]


@dataclass(slots=True)
class _ShardKeys:
    """The keys of a shard, as its index buckets are read: the row numbers of all keys, and the columns of matching
    ones.
    """

    matchers: Sequence[Matcher]
    groups: int
    table: KeyTable = field(default_factory=KeyTable)
    labels: list[LabelBytes] = field(default_factory=list)
    columns: list[tuple[U64s, U64s, U64s, I64s, I64s]] = field(default_factory=list)
    known: I64s = field(init=False)
    starts: I64s = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __post_init__(self) -> None:
        self.known = np.zeros(self.groups, dtype=np.int64)

    def take(self, records: StoredRecords) -> None:
        keys, hashes = records.keys, records.keys.key_hashes
        low, high = hashes[:, 0].copy(), hashes[:, 1].copy()
        assigned = self.table.assign(low, high, next_row=len(self.table), max_keys=MISSING)
        self.starts = np.append(self.starts, np.full(len(assigned.new), np.iinfo(np.int64).max))
        np.minimum.at(self.starts, assigned.rows, records.start)
        new = keys.take(assigned.new)
        if not len(new):
            return
        metric = np.empty(len(new), dtype=np.uint64)
        hash_metrics(new.keys, new.offsets, metric)
        self.known += np.bincount((metric % np.uint64(self.groups)).astype(np.int64), minlength=self.groups)
        offsets = np.asarray(new.offsets, dtype=np.int64)
        wanted = np.flatnonzero(match_keys(offsets, new.keys, self.matchers))
        if not len(wanted):
            return
        kept, indices = new.take(wanted), assigned.new[wanted]
        self.labels.append(LabelBytes.of_part_keys(np.asarray(kept.offsets, dtype=np.int64), kept.keys))
        rows = assigned.rows[indices]
        self.columns.append((metric[wanted], high[indices], low[indices], records.end[indices], rows.astype(np.int64)))


def resolve_series(store: Store, pins: Pins, matchers: Sequence[Matcher]) -> ResolvedSeries:
    """The matching series of all pinned index buckets. Raises `BucketDamaged` and `InvalidMatcher`."""
    check_matchers(matchers)
    shards: dict[int, _ShardKeys] = {}
    for one in pins.indexes:
        keys = shards.setdefault(one.shard, _ShardKeys(matchers, pins.groups))
        for records in _records(store, pins.dataset, one):
            keys.take(records)
    known = {
        (shard, group): int(count) for shard, keys in shards.items() for group, count in enumerate(keys.known) if count
    }
    return ResolvedSeries(_joined(shards), known)


def _records(store: Store, dataset: str, one: PinnedIndex) -> Sequence[StoredRecords]:
    named = one.row.index
    if named is None:
        return ()
    rows = list(store.index_bucket(IndexBucketOf(ShardId(dataset, one.shard), one.row.bucket, named.attempt)))
    return decode_bucket(one.row.bucket, rows, named.rows, named.checksum).records


def _joined(shards: dict[int, _ShardKeys]) -> SeriesSet:
    """The series of all shards. One that several shards have, because partitions were added, appears once."""
    labels = LabelBytes.concatenated([part for keys in shards.values() for part in keys.labels])
    columns = [(shard, keys.starts, part) for shard, keys in shards.items() for part in keys.columns]
    hashes, times = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
    metric, high, low = (np.concatenate([hashes, *(part[column] for _, _, part in columns)]) for column in range(3))
    end = np.concatenate([times, *(part[3] for _, _, part in columns)])
    start = np.concatenate([times, *(starts[part[4]] for _, starts, part in columns)])
    shard = np.concatenate([times, *(np.full(len(part[0]), shard) for shard, _, part in columns)])
    order = np.lexsort((shard, low, high, metric))
    same = np.zeros(len(order), dtype=np.bool_)
    same[1:] = (high[order][1:] == high[order][:-1]) & (low[order][1:] == low[order][:-1])
    firsts = np.flatnonzero(~same)
    number = np.cumsum(~same) - 1
    earliest, latest = start[order][firsts], end[order][firsts]
    np.minimum.at(earliest, number, start[order])
    np.maximum.at(latest, number, end[order])
    shards_of, sets = _shard_sets(shard[order], firsts)
    kept = order[firsts]
    return SeriesSet(labels.take(kept), metric[kept], high[kept], low[kept], earliest, latest, shards_of, sets)


def _shard_sets(shard: I64s, firsts: I64s) -> tuple[U32s, tuple[tuple[int, ...], ...]]:
    """The index of each series' set of shards, and the distinct sets. Nearly all series have one shard."""
    numbers: dict[tuple[int, ...], int] = {}
    counts = np.diff(np.append(firsts, len(shard)))
    shards_of = np.empty(len(firsts), dtype=np.uint32)
    for count in np.unique(counts).tolist():
        of_count = np.flatnonzero(counts == count)
        rows = np.stack([shard[firsts[of_count] + index] for index in range(count)], axis=1)
        distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
        given = [numbers.setdefault(tuple(one), len(numbers)) for one in distinct.tolist()]
        shards_of[of_count] = np.array(given, dtype=np.uint32)[inverse.ravel()]
    return shards_of, tuple(numbers)
