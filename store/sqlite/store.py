"""The store in a SQLite file. Each method is one transaction, or a series of short ones."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from strandline.clock import Clock
from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.store.compared import require_bounded, require_later_version, require_parts_of_one_job
from strandline.store.jobs import Job, JobResultOf, ResultRow
from strandline.store.protocol import Store
from strandline.store.rows import (
    DatasetShape,
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
from strandline.store.sqlite import blobs, manifest
from strandline.store.sqlite.connections import Connections
from strandline.store.sqlite.expiry import Expiry
from strandline.store.sqlite.jobs import BULK_JOBS, BULK_PARTS, REPLAY_JOBS

DEFAULT_BUSY_TIMEOUT = 30.0


def open_sqlite_store(path: Path, clock: Clock, *, busy_timeout: float = DEFAULT_BUSY_TIMEOUT) -> Store:
    """Open the store in the file at `path`, which is created if it is missing; its folder must exist.

    `clock` determines what has expired, by two readings a minute apart. A call waits up to `busy_timeout` seconds for
    other writers, in this process and in others, and then raises `StoreUnavailable`. Raises `StoreRefused` for a file
    that is not a store, or that a newer version wrote.
    """
    return SqliteStore(Connections(path, busy_timeout=busy_timeout), clock)


class SqliteStore:
    """A `Store`; the protocol documents its methods."""

    def __init__(self, connections: Connections, clock: Clock) -> None:
        self._connections = connections
        self._expiry = Expiry(clock)
        self._blobs = blobs.Blobs(connections, self._expiry)

    def close(self) -> None:
        self._connections.close()

    def server_time(self) -> int | None:
        return None

    def create_dataset(self, shape: DatasetShape) -> DatasetShape:
        with self._connections.writing() as connection:
            return manifest.create_dataset(connection, shape)

    def dataset(self, name: str) -> DatasetShape | None:
        with self._connections.reading() as connection:
            return manifest.read_dataset(connection, name)

    def state(self, shard: ShardId) -> ShardState | None:
        with self._connections.reading() as connection:
            return manifest.read_state(connection, shard)

    def take(
        self, shard: ShardId, owner: str, after: ShardState | None, *, now: int, topic_id: str
    ) -> Ownership | None:
        with self._connections.writing() as connection:
            return manifest.take(connection, shard, owner, after, now=now, topic_id=topic_id)

    def touch(self, ownership: Ownership, seen_at: int | None, beats: int) -> None:
        with self._connections.writing() as connection:
            manifest.touch(connection, ownership, seen_at, beats)

    def manifest(self, shard: ShardId, *, first: int | None = None, last: int | None = None) -> ManifestRows | None:
        with self._connections.reading() as connection:
            return manifest.read_manifest(connection, shard, first=first, last=last)

    def commit(self, ownership: Ownership, write: ManifestWrite) -> None:
        with self._connections.writing() as connection:
            manifest.commit(connection, ownership, write)
            self._expiry.delete_some(connection, written=len(write.cuts) + len(write.groups))

    def write_segments(self, where: SegmentsOf, segments: Sequence[Segment], lifetime: Lifetime) -> None:
        rows = ((segment.first, segment.seq, segment.data) for segment in segments)
        self._blobs.write(blobs.INSERT_SEGMENT, _segments_address(where), rows, lifetime.expires)

    def segments(
        self, where: SegmentsOf, *, first: bytes | None = None, last: bytes | None = None
    ) -> Iterator[Segment]:
        address = _segments_address(where)
        after = blobs.BEFORE_SEGMENTS if first is None else self._blobs.before_range(address, first)
        if last is None:
            rows = self._blobs.read(blobs.SELECT_SEGMENTS, address, after)
        else:
            rows = self._blobs.read(blobs.SELECT_SEGMENTS_UP_TO, address, after, (last,))
        for key, seq, data in rows:
            yield Segment(key, seq, data)

    def write_index_bucket(self, where: IndexBucketOf, rows: Iterable[bytes], lifetime: Lifetime) -> int:
        return self._blobs.write(blobs.INSERT_INDEX_ROW, _attempt_address(where), enumerate(rows), lifetime.expires)

    def index_bucket(self, where: IndexBucketOf) -> Iterator[bytes]:
        for _, data in self._blobs.read(blobs.SELECT_INDEX_ROWS, _attempt_address(where), blobs.BEFORE_ROWS):
            yield data

    def add_job(self, job: Job) -> bool:
        return self._change(lambda connection, now: REPLAY_JOBS.add(connection, job, now=now))

    def jobs(self, shard: ShardId) -> Sequence[Job]:
        with self._connections.reading() as connection:
            return REPLAY_JOBS.read(connection, (shard.dataset, shard.shard))

    def replace_job(self, before: Job, after: Job) -> bool:
        return self._change(lambda connection, now: REPLAY_JOBS.replace(connection, before, after, now=now))

    def remove_job(self, job: Job) -> bool:
        return self._change(lambda connection, _: REPLAY_JOBS.remove(connection, job))

    def write_result(self, where: JobResultOf, rows: Sequence[ResultRow], lifetime: Lifetime) -> None:
        values = ((row.kind, row.seq, row.data) for row in rows)
        self._blobs.write(blobs.INSERT_RESULT, _attempt_address(where), values, lifetime.expires)

    def result(self, where: JobResultOf, kind: str, *, seq: int | None = None) -> Iterator[ResultRow]:
        address = (*_attempt_address(where), kind)
        first, last = (0, blobs.LAST_ROW) if seq is None else (seq, seq)
        for number, data in self._blobs.read(blobs.SELECT_RESULTS, address, (first - 1,), (last,)):
            yield ResultRow(kind, number, data)

    def add_bulk_parts(self, parts: Sequence[BulkPart]) -> bool:
        require_parts_of_one_job(parts)
        for part in parts:
            require_bounded(part)

        def change(connection: sqlite3.Connection, now: int) -> bool:
            return all(BULK_PARTS.add(connection, part, now=now) for part in parts)

        return self._change(change, written=len(parts))

    def bulk_parts(self, dataset: str, job: str) -> Sequence[BulkPart]:
        with self._connections.reading() as connection:
            return BULK_PARTS.read(connection, (dataset, job))

    def bulk_part(self, dataset: str, job: str, part: int) -> BulkPart | None:
        with self._connections.reading() as connection:
            return BULK_PARTS.read_one(connection, (dataset, job, part))

    def replace_bulk_part(self, before: BulkPart, after: BulkPart) -> bool:
        require_bounded(after)
        return self._change(lambda connection, now: BULK_PARTS.replace(connection, before, after, now=now))

    def remove_bulk_parts(self, parts: Sequence[BulkPart]) -> bool:
        require_parts_of_one_job(parts)

        def change(connection: sqlite3.Connection, _now: int) -> bool:
            are_removed = [BULK_PARTS.remove(connection, part) for part in parts]
            return all(are_removed)

        return self._change(change, written=len(parts))

    def add_bulk_job(self, job: BulkJob) -> bool:
        require_bounded(job)
        return self._change(lambda connection, now: BULK_JOBS.add(connection, job, now=now))

    def bulk_jobs(self, dataset: str) -> Sequence[BulkJob]:
        with self._connections.reading() as connection:
            return BULK_JOBS.read(connection, (dataset,))

    def bulk_job(self, dataset: str, job: str) -> BulkJob | None:
        with self._connections.reading() as connection:
            return BULK_JOBS.read_one(connection, (dataset, job))

    def replace_bulk_job(self, before: BulkJob, after: BulkJob) -> bool:
        require_later_version(before, after)
        require_bounded(after)
        return self._change(lambda connection, now: BULK_JOBS.replace(connection, before, after, now=now))

    def remove_bulk_job(self, job: BulkJob) -> bool:
        return self._change(lambda connection, _: BULK_JOBS.remove(connection, job))

    def _change(self, change: Callable[[sqlite3.Connection, int], bool], *, written: int = 1) -> bool:
        with self._connections.writing() as connection:
            changed = change(connection, self._expiry.clock.now_ms())
            self._expiry.delete_some(connection, written=written)
        return changed


def _segments_address(where: SegmentsOf) -> blobs.Values:
    return where.shard.dataset, where.shard.shard, where.bucket, where.group, where.attempt


def _attempt_address(where: IndexBucketOf | JobResultOf) -> blobs.Values:
    return where.shard.dataset, where.shard.shard, where.bucket, where.attempt
