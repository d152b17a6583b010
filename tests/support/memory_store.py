"""An in-memory implementation of the Cassandra store: rows expire by the server's clock after their lifetime.

For simulations, which create thousands of stores a minute. The contract suite checks that it behaves like the others.
"""

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from strandline.clock import Clock
from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.store.compared import (
    ComparedRow,
    require_bounded,
    require_later_version,
    require_parts_of_one_job,
    require_same_key,
)
from strandline.store.jobs import Job, JobResultOf, ResultRow
from strandline.store.protocol import Fenced
from strandline.store.rows import (
    CutRow,
    DatasetShape,
    GroupRow,
    IndexBucketOf,
    Lifetime,
    ManifestRows,
    ManifestWrite,
    Ownership,
    Segment,
    SegmentsOf,
    ShardId,
    ShardState,
)

K = TypeVar("K")
T = TypeVar("T")
C = TypeVar("C", bound=ComparedRow)


@dataclass
class _Expiring(Generic[T]):
    """A row and the time at which it expires, by the server's clock."""

    row: T
    until: int


@dataclass
class _Shard:
    state: ShardState
    cuts: dict[int, _Expiring[CutRow]] = field(default_factory=dict)
    groups: dict[tuple[int, int], _Expiring[GroupRow]] = field(default_factory=dict)


class MemoryServer:
    """The content of the store, which outlives its clients. Rows expire by `clock`. `server_time` reads
    `server_time_clock`, by default the same clock.
    """

    def __init__(self, clock: Clock, server_time_clock: Clock | None = None) -> None:
        self.clock, self.server_time_clock = clock, server_time_clock or clock
        self.lock = threading.RLock()
        self.datasets: dict[str, DatasetShape] = {}
        self.shards: dict[ShardId, _Shard] = {}
        self.segments: dict[SegmentsOf, dict[tuple[bytes, int], _Expiring[Segment]]] = {}
        self.index_buckets: dict[IndexBucketOf, dict[int, _Expiring[bytes]]] = {}
        self.jobs = _ComparedRows[Job](self)
        self.bulk_jobs = _ComparedRows[BulkJob](self)
        self.bulk_parts = _ComparedRows[BulkPart](self)
        self.results: dict[JobResultOf, dict[tuple[str, int], _Expiring[ResultRow]]] = {}

    def until(self, length: int) -> int:
        """When something written now expires that lives for `length` milliseconds."""
        return self.clock.now_ms() + length


class _ComparedRows(Generic[C]):
    """Rows that are only changed by compare-and-set."""

    def __init__(self, server: MemoryServer) -> None:
        self._server = server
        self._partitions: dict[tuple[object, ...], dict[Any, _Expiring[C]]] = {}

    def read(self, partition: tuple[object, ...]) -> list[C]:
        with self._server.lock:
            there = self._partitions.get(partition, {})
            _drop_expired(there, self._server.clock.now_ms())
            return [there[place].row for place in sorted(there)]

    def read_one(self, place: tuple[object, ...]) -> C | None:
        with self._server.lock:
            found = self._partitions.get(place[:-1], {}).get(place[-1])
            return found.row if found is not None and found.until > self._server.clock.now_ms() else None

    def add(self, row: C) -> bool:
        with self._server.lock:
            there = self.read_one(row.primary_key)
            if there is None:
                self._put(row)
            return there is None or there == row

    def replace(self, before: C, after: C) -> bool:
        require_same_key(before, after)
        with self._server.lock:
            there = self.read_one(before.primary_key)
            if there is None or there.compared != before.compared:
                return False
            self._put(after)
            return True

    def remove(self, row: C) -> bool:
        with self._server.lock:
            there = self.read_one(row.primary_key)
            if there is None or there.compared != row.compared:
                return False
            del self._partitions[row.primary_key[:-1]][row.primary_key[-1]]
            return True

    def _put(self, row: C) -> None:
        there = self._partitions.setdefault(row.primary_key[:-1], {})
        there[row.primary_key[-1]] = _Expiring(row, self._server.until(row.life))


class MemoryStore:
    """A `Store`: see its methods."""

    def __init__(self, server: MemoryServer) -> None:
        self._server = server

    def close(self) -> None:
        """Does nothing."""

    def server_time(self) -> int | None:
        return self._server.server_time_clock.now_ms()

    def create_dataset(self, shape: DatasetShape) -> DatasetShape:
        with self._server.lock:
            return self._server.datasets.setdefault(shape.dataset, shape)

    def dataset(self, name: str) -> DatasetShape | None:
        return self._server.datasets.get(name)

    def state(self, shard: ShardId) -> ShardState | None:
        found = self._server.shards.get(shard)
        return found.state if found is not None else None

    def take(
        self, shard: ShardId, owner: str, after: ShardState | None, *, now: int, topic_id: str
    ) -> Ownership | None:
        with self._server.lock:
            there = self._server.shards.get(shard)
            if _holder(there.state if there is not None else None) != _holder(after):
                return None
            if there is None:
                there = self._server.shards[shard] = _Shard(ShardState(0, "", None, topic_id, 0))
            epoch = there.state.epoch + 1
            there.state = replace(there.state, epoch=epoch, owner=owner, seen_at=now, beats=0)
            return Ownership(shard, epoch, owner)

    def touch(self, ownership: Ownership, seen_at: int | None, beats: int) -> None:
        with self._server.lock:
            there = self._owned(ownership)
            there.state = replace(there.state, seen_at=seen_at, beats=beats)

    def manifest(self, shard: ShardId, *, first: int | None = None, last: int | None = None) -> ManifestRows | None:
        with self._server.lock:
            there = self._server.shards.get(shard)
            if there is None:
                return None
            now = self._server.clock.now_ms()
            _drop_expired(there.cuts, now)
            _drop_expired(there.groups, now)
            cuts = [row.row for row in there.cuts.values() if _is_within(row.row.bucket, first, last)]
            groups = [row.row for row in there.groups.values() if _is_within(row.row.bucket, first, last)]
            return ManifestRows(
                there.state,
                tuple(sorted(cuts, key=lambda row: -row.bucket)),
                tuple(sorted(groups, key=lambda row: (-row.bucket, row.group))),
            )

    def commit(self, ownership: Ownership, write: ManifestWrite) -> None:
        with self._server.lock:
            there, until = self._owned(ownership), self._server.until
            for cut in write.cuts:
                there.cuts[cut.bucket] = _Expiring(cut, until(cut.expires - write.present))
            for row in write.groups:
                there.groups[row.bucket, row.group] = _Expiring(row, until(row.expires - write.present))
            there.state = replace(
                there.state,
                next_part_id=max(there.state.next_part_id, write.next_part_id or 0),
                topic_id=there.state.topic_id if write.topic_id is None else write.topic_id,
            )

    def write_segments(self, where: SegmentsOf, segments: Sequence[Segment], lifetime: Lifetime) -> None:
        with self._server.lock:
            until, there = self._server.until(lifetime.length), self._server.segments.setdefault(where, {})
            for segment in segments:
                there[segment.first, segment.seq] = _Expiring(segment, until)

    def segments(
        self, where: SegmentsOf, *, first: bytes | None = None, last: bytes | None = None
    ) -> Iterator[Segment]:
        with self._server.lock:
            there = self._server.segments.get(where, {})
            _drop_expired(there, self._server.clock.now_ms())
            places = sorted(there)
            begin = 0
            if first is not None:
                # The last row whose first series is below the wanted one may contain the wanted one.
                begin = max(0, bisect_left(places, (first, -1)) - 1)
            found = [there[place].row for place in places[begin:] if last is None or place[0] <= last]
        yield from found

    def write_index_bucket(self, where: IndexBucketOf, rows: Iterable[bytes], lifetime: Lifetime) -> int:
        given = list(rows)
        with self._server.lock:
            until, there = self._server.until(lifetime.length), self._server.index_buckets.setdefault(where, {})
            for place, row in enumerate(given):
                there[place] = _Expiring(row, until)
        return len(given)

    def index_bucket(self, where: IndexBucketOf) -> Iterator[bytes]:
        with self._server.lock:
            there = self._server.index_buckets.get(where, {})
            _drop_expired(there, self._server.clock.now_ms())
            found = [there[place].row for place in sorted(there)]
        yield from found

    def add_job(self, job: Job) -> bool:
        return self._server.jobs.add(job)

    def jobs(self, shard: ShardId) -> Sequence[Job]:
        return self._server.jobs.read((shard.dataset, shard.shard))

    def replace_job(self, before: Job, after: Job) -> bool:
        return self._server.jobs.replace(before, after)

    def remove_job(self, job: Job) -> bool:
        return self._server.jobs.remove(job)

    def write_result(self, where: JobResultOf, rows: Sequence[ResultRow], lifetime: Lifetime) -> None:
        with self._server.lock:
            until, there = self._server.until(lifetime.length), self._server.results.setdefault(where, {})
            for row in rows:
                there[row.kind, row.seq] = _Expiring(row, until)

    def result(self, where: JobResultOf, kind: str, *, seq: int | None = None) -> Iterator[ResultRow]:
        with self._server.lock:
            there = self._server.results.get(where, {})
            _drop_expired(there, self._server.clock.now_ms())
            found = [there[of, at].row for of, at in sorted(there) if of == kind and seq in (None, at)]
        yield from found

    def add_bulk_parts(self, parts: Sequence[BulkPart]) -> bool:
        require_parts_of_one_job(parts)
        for part in parts:
            require_bounded(part)
        with self._server.lock:
            return all(self._server.bulk_parts.add(part) for part in parts)

    def bulk_parts(self, dataset: str, job: str) -> Sequence[BulkPart]:
        return self._server.bulk_parts.read((dataset, job))

    def bulk_part(self, dataset: str, job: str, part: int) -> BulkPart | None:
        return self._server.bulk_parts.read_one((dataset, job, part))

    def replace_bulk_part(self, before: BulkPart, after: BulkPart) -> bool:
        require_bounded(after)
        return self._server.bulk_parts.replace(before, after)

    def remove_bulk_parts(self, parts: Sequence[BulkPart]) -> bool:
        require_parts_of_one_job(parts)
        with self._server.lock:
            are_removed = [self._server.bulk_parts.remove(part) for part in parts]
        return all(are_removed)

    def add_bulk_job(self, job: BulkJob) -> bool:
        require_bounded(job)
        return self._server.bulk_jobs.add(job)

    def bulk_jobs(self, dataset: str) -> Sequence[BulkJob]:
        return self._server.bulk_jobs.read((dataset,))

    def bulk_job(self, dataset: str, job: str) -> BulkJob | None:
        return self._server.bulk_jobs.read_one((dataset, job))

    def replace_bulk_job(self, before: BulkJob, after: BulkJob) -> bool:
        require_later_version(before, after)
        require_bounded(after)
        return self._server.bulk_jobs.replace(before, after)

    def remove_bulk_job(self, job: BulkJob) -> bool:
        return self._server.bulk_jobs.remove(job)

    def _owned(self, ownership: Ownership) -> _Shard:
        there = self._server.shards.get(ownership.shard)
        if there is None or _holder(there.state) != (ownership.epoch, ownership.owner):
            raise Fenced(f"{ownership.owner!r} of epoch {ownership.epoch} may not write shard {ownership.shard}")
        return there


def _holder(state: ShardState | None) -> tuple[int, str] | None:
    return None if state is None else (state.epoch, state.owner)


def _is_within(bucket: int, first: int | None, last: int | None) -> bool:
    return (first is None or bucket >= first) and (last is None or bucket <= last)


def _drop_expired(rows: dict[K, _Expiring[T]], now: int) -> None:
    gone = [place for place, row in rows.items() if row.until <= now]
    for place in gone:
        del rows[place]
