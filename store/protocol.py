"""The interface of a store, which Cassandra's and SQLite's implement. One contract test suite checks both.

All calls are thread-safe. `Fenced` and `StoreRefused` are permanent errors; `StoreUnavailable` may be retried.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from strandline.errors import Fatal, Retryable
from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.store.jobs import Job, JobResultOf, ResultRow
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


class Fenced(Fatal):
    """Another owner has taken the shard. The caller's write was not applied."""


class StoreUnavailable(Retryable):
    """The store, or enough of its servers, did not answer in time. The write may or may not have been applied."""


class StoreRefused(Fatal):
    """The store rejects the call: another schema version, a value out of bounds, a missing table."""


class Store(Protocol):
    """Manifest, segments, index buckets and jobs of any number of datasets.

    A row exists at least until its lifetime has passed by the store's own clock, and may be gone afterwards. No call
    filters rows by a client's wall clock: callers that must not see expired rows compare `expires` themselves.

    A conditional write that timed out is resolved before the call returns, by a serial read, which also completes a
    pending write. So a call returns after it was applied, raises `Fenced` if it certainly was not, or raises
    `StoreUnavailable` if that is unknown.
    """

    def close(self) -> None:
        """Close connections or files. Closing twice has no effect."""
        ...

    def server_time(self) -> int | None:
        """Return the wall clock of one of the store's servers in milliseconds; None for a store without a server."""
        ...

    # Datasets.

    def create_dataset(self, shape: DatasetShape) -> DatasetShape:
        """Create a dataset unless it exists. Return the stored shape, whichever call stored it."""
        ...

    def dataset(self, name: str) -> DatasetShape | None:
        """Return the shape of a dataset, if it exists."""
        ...

    # Ownership.

    def state(self, shard: ShardId) -> ShardState | None:
        """Return a shard's state, by a serial read; None if the shard never had an owner."""
        ...

    def take(
        self, shard: ShardId, owner: str, after: ShardState | None, *, now: int, topic_id: str
    ) -> Ownership | None:
        """Take ownership if the state still has the epoch and owner of `after`; otherwise return None.

        The epoch rises by one, `seen_at` becomes `now` and `beats` becomes 0. `topic_id` is used only for a shard
        without a state; an existing state keeps its own. `owner` must be new and random.
        """
        ...

    def touch(self, ownership: Ownership, seen_at: int | None, beats: int) -> None:
        """Write heartbeat number `beats`. `seen_at` is None if the owner stops. Raises `Fenced`."""
        ...

    # The manifest.

    def manifest(self, shard: ShardId, *, first: int | None = None, last: int | None = None) -> ManifestRows | None:
        """Return the rows of buckets `first` to `last` (inclusive), by a serial read; None if the shard has no state.

        The rows are a consistent snapshot, except that group rows committed during the read may or may not be included.
        For each group, every row that was committed before an included row is included too.
        """
        ...

    def commit(self, ownership: Ownership, write: ManifestWrite) -> None:
        """Write rows into the manifest atomically. Raises `Fenced` if the caller no longer owns the shard.

        Committing the same rows again only renews their lifetimes.
        """
        ...

    # Segments and index buckets: plain writes under an attempt, which no other writer uses.

    def write_segments(self, where: SegmentsOf, segments: Sequence[Segment], lifetime: Lifetime) -> None:
        """Write segments. When this returns, all are stored."""
        ...

    def segments(
        self, where: SegmentsOf, *, first: bytes | None = None, last: bytes | None = None
    ) -> Iterator[Segment]:
        """Yield segments in order; all, or those that may contain series from `first` to `last` (inclusive).

        A series may be in a row whose own first series is lower. So the range starts with the last row whose first
        series is below `first`, and ends with the last row whose first series is at most `last`.
        """
        ...

    def write_index_bucket(self, where: IndexBucketOf, rows: Iterable[bytes], lifetime: Lifetime) -> int:
        """Write the rows of an index bucket in order; return their number. When this returns, all are stored."""
        ...

    def index_bucket(self, where: IndexBucketOf) -> Iterator[bytes]:
        """Yield the rows of an index bucket, in order; nothing if it does not exist. Rows are up to 1 MB, so few are
        read at a time.
        """
        ...

    # Replay jobs and their results. Jobs are only changed by compare-and-set.

    def add_job(self, job: Job) -> bool:
        """Add a job, unless its shard has one for the bucket. Return whether the stored job is now the given one."""
        ...

    def jobs(self, shard: ShardId) -> Sequence[Job]:
        """Return a shard's jobs in order of their buckets, by a serial read."""
        ...

    def replace_job(self, before: Job, after: Job) -> bool:
        """Replace `before` by `after` if plan, state, epoch, worker, lease and renewals are still those of `before`."""
        ...

    def remove_job(self, job: Job) -> bool:
        """Remove a job, under the condition of `replace_job`. Return whether this call removed it."""
        ...

    def write_result(self, where: JobResultOf, rows: Sequence[ResultRow], lifetime: Lifetime) -> None:
        """Write rows of a job's result. When this returns, all are stored."""
        ...

    def result(self, where: JobResultOf, kind: str, *, seq: int | None = None) -> Iterator[ResultRow]:
        """Yield the rows of one kind in order, or the one with number `seq`."""
        ...

    # Bulk jobs and their parts, which are only changed by compare-and-set. Texts are limited to 64 KB (`StoreRefused`).

    def add_bulk_parts(self, parts: Sequence[BulkPart]) -> bool:
        """Add parts of one job where there are none. Return whether all stored parts are now the given ones.

        If an existing part differs, some of the others may have been added.
        """
        ...

    def bulk_parts(self, dataset: str, job: str) -> Sequence[BulkPart]:
        """Return a job's parts in order of their numbers, by serial reads. Each is as it was at some moment during the
        call.
        """
        ...

    def bulk_part(self, dataset: str, job: str, part: int) -> BulkPart | None:
        """Return one part, by a serial read."""
        ...

    def replace_bulk_part(self, before: BulkPart, after: BulkPart) -> bool:
        """Replace `before` by `after` if state, epoch, worker, lease and renewals are still those of `before`."""
        ...

    def remove_bulk_parts(self, parts: Sequence[BulkPart]) -> bool:
        """Remove those of a job's parts that are unchanged, under the condition of `replace_bulk_part`. Return whether
        this call removed all of them.
        """
        ...

    def add_bulk_job(self, job: BulkJob) -> bool:
        """Add a job, unless there is one with this id. Return whether the stored job is now the given one. The job's
        parts must have been added before.
        """
        ...

    def bulk_jobs(self, dataset: str) -> Sequence[BulkJob]:
        """Return a dataset's jobs in order of their ids, by serial reads. Each is as it was at some moment during the
        call.
        """
        ...

    def bulk_job(self, dataset: str, job: str) -> BulkJob | None:
        """Return one job, by a serial read."""
        ...

    def replace_bulk_job(self, before: BulkJob, after: BulkJob) -> bool:
        """Replace `before` by `after` if plan, version, state, window and requested state are still those of `before`.
        Raises `ValueError` unless the version rises.
        """
        ...

    def remove_bulk_job(self, job: BulkJob) -> bool:
        """Remove a job, under the condition of `replace_bulk_job`. Return whether this call removed it. Its parts must
        be removed first: they are only found through the job.
        """
        ...
