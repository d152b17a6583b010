"""From a selector to series, by the index buckets that are stored: no node has to run.

Every index bucket that a pinned manifest names is read, newest first. A key's first record counts for its end; for its
start all of them do. Only series that match are kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from strandline.arrays import I64s, U32s, U64s
from strandline.index.bucket_codec import StoredRecords, decode_bucket
from strandline.index.kernels.part_keys import hash_metrics
from strandline.index.key_table import MISSING, KeyTable
from strandline.index.matchers import Matcher
from strandline.jobs.reading.matching import check_matchers, matching
from strandline.jobs.reading.pins import PinnedIndex, Pins
from strandline.jobs.reading.series_set import LabelBytes, SeriesSet
from strandline.store.protocol import Store
from strandline.store.rows import IndexBucketOf, ShardId


@dataclass(frozen=True, slots=True)
class Resolved:
    """Series that match, and how many series each group of each shard has in all, matching or not."""

    series: SeriesSet
    known: dict[tuple[int, int], int]


@dataclass(slots=True)
class _ShardKeys:
    """The keys of one shard, as its index buckets are read: of all of them their numbers, of those that match the
    columns.
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
        wanted = np.flatnonzero(matching(offsets, new.keys, self.matchers))
        if not len(wanted):
            return
        kept, places = new.take(wanted), assigned.new[wanted]
        self.labels.append(LabelBytes.of_part_keys(np.asarray(kept.offsets, dtype=np.int64), kept.keys))
        rows = assigned.rows[places]
        self.columns.append((metric[wanted], high[places], low[places], records.end[places], rows.astype(np.int64)))


def resolve(store: Store, pins: Pins, matchers: Sequence[Matcher]) -> Resolved:
    """The series that match, by all index buckets that are pinned. Raises `BucketDamaged`, `InvalidMatcher`."""
    check_matchers(matchers)
    shards: dict[int, _ShardKeys] = {}
    for one in pins.indexes:
        keys = shards.setdefault(one.shard, _ShardKeys(matchers, pins.groups))
        for records in _records(store, pins.dataset, one):
            keys.take(records)
    known = {
        (shard, group): int(count) for shard, keys in shards.items() for group, count in enumerate(keys.known) if count
    }
    return Resolved(_joined(shards), known)


def _records(store: Store, dataset: str, one: PinnedIndex) -> Sequence[StoredRecords]:
    named = one.row.index
    if named is None:
        return ()
    rows = list(store.index_bucket(IndexBucketOf(ShardId(dataset, one.shard), one.row.bucket, named.attempt)))
    return decode_bucket(one.row.bucket, rows, named.rows, named.checksum).records


def _joined(shards: dict[int, _ShardKeys]) -> SeriesSet:
    """The series of all shards. One that several shards know, since partitions were added, is there once."""
    labels = LabelBytes.concatenated([part for keys in shards.values() for part in keys.labels])
    columns = [(shard, keys.starts, part) for shard, keys in shards.items() for part in keys.columns]
    hashes, times = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
    metric, high, low = (np.concatenate([hashes, *(part[place] for _, _, part in columns)]) for place in range(3))
    end = np.concatenate([times, *(part[3] for _, _, part in columns)])
    start = np.concatenate([times, *(starts[part[4]] for _, starts, part in columns)])
    shard = np.concatenate([times, *(np.full(len(part[0]), shard) for shard, _, part in columns)])
    order = np.lexsort((shard, low, high, metric))
    same = np.zeros(len(order), dtype=np.bool_)
    same[1:] = (high[order][1:] == high[order][:-1]) & (low[order][1:] == low[order][:-1])
    firsts = np.flatnonzero(~same)
    number = np.cumsum(~same) - 1
    least, greatest = start[order][firsts], end[order][firsts]
    np.minimum.at(least, number, start[order])
    np.maximum.at(greatest, number, end[order])
    shards_of, sets = _shard_sets(shard[order], firsts)
    kept = order[firsts]
    return SeriesSet(labels.take(kept), metric[kept], high[kept], low[kept], least, greatest, shards_of, sets)


def _shard_sets(shard: I64s, firsts: I64s) -> tuple[U32s, tuple[tuple[int, ...], ...]]:
    """The number of each series' set of shards, and the sets. Nearly all have one shard; the others are few sets."""
    numbers: dict[tuple[int, ...], int] = {}
    counts = np.diff(np.append(firsts, len(shard)))
    shards_of = np.empty(len(firsts), dtype=np.uint32)
    for count in np.unique(counts).tolist():
        of_count = np.flatnonzero(counts == count)
        rows = np.stack([shard[firsts[of_count] + place] for place in range(count)], axis=1)
        distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
        given = [numbers.setdefault(tuple(one), len(numbers)) for one in distinct.tolist()]
        shards_of[of_count] = np.array(given, dtype=np.uint32)[inverse.ravel()]
    return shards_of, tuple(numbers)
