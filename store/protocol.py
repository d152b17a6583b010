"""What a store does, whichever it is: Cassandra's or the one in a SQLite file. One contract suite holds both to it.

Every call may be made from any thread. `Fenced` and `StoreRefused` are final; `StoreUnavailable` may pass.
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
    """Somebody else has taken the shard. What the caller wanted to write was not written."""


class StoreUnavailable(Retryable):
    """The store did not answer in time, or not enough of it did. What was to be written may or may not be there."""


class StoreRefused(Fatal):
    """The store will not do this: another schema version, a value out of bounds, no such table."""


class Store(Protocol):
    """Manifest, segments, index buckets and jobs of any number of datasets.

    What has a lifetime is there at least until that is over by the store's own clock, and may be gone afterwards. No
    call looks at a client's wall clock to leave something out: callers who must not see what has expired compare
    `expires` themselves. A conditional write that timed out is resolved before the call returns:
    by a serial read, which also completes what is under way. So a call either did what it says, or raised `Fenced`
    knowing that it did nothing, or raised `StoreUnavailable` not knowing.
    """

    def close(self) -> None:
        """Let go of connections or files. Closing twice does nothing."""
        ...

    def server_time(self) -> int | None:
        """The wall clock of one of the store's servers, in milliseconds; None for a store without a server."""
        ...

    # Datasets.

    def create_dataset(self, shape: DatasetShape) -> DatasetShape:
        """Make a dataset unless there is one by this name; the shape that is stored, whoever stored it."""
        ...

    def dataset(self, name: str) -> DatasetShape | None:
        """The shape of a dataset, if it was made."""
        ...

    # Ownership.

    def state(self, shard: ShardId) -> ShardState | None:
        """Who owns a shard, by a serial read; None for a shard that nobody has ever taken."""
        ...

    def take(
        self, shard: ShardId, owner: str, after: ShardState | None, *, now: int, topic_id: str
    ) -> Ownership | None:
        """Become the owner, if the state is still `after` (epoch and owner of it); None if somebody was faster.

        The epoch rises by one, `seen_at` becomes `now` and `beats` 0. `topic_id` counts for a shard without a state
        only; an existing one keeps its own. `owner` must be new and random.
        """
        ...

    def touch(self, ownership: Ownership, seen_at: int | None, beats: int) -> None:
        """Write a heartbeat: the owner lives (`seen_at`) or has left (None), and this is its `beats`-th. Raises
        `Fenced`.
        """
        ...

    # The manifest.

    def manifest(self, shard: ShardId, *, first: int | None = None, last: int | None = None) -> ManifestRows | None:
        """The rows of buckets from `first` to `last`, both included, by a serial read; None without a state.

        They are those of one moment, with or without group rows that were committed while they were read. Of each
        group's rows, none is missing that was committed before another one that is there.
        """
        ...

    def commit(self, ownership: Ownership, write: ManifestWrite) -> None:
        """Write rows into the manifest, all or none. Raises `Fenced` if the shard is not the caller's any more.

        Committing the same again changes nothing, but that the rows' lives begin anew.
        """
        ...

    # Segments and index buckets: plain writes under an attempt, which nobody else writes.

    def write_segments(self, where: SegmentsOf, segments: Sequence[Segment], life: Lifetime) -> None:
        """Write segments; all are there when this returns."""
        ...

    def segments(
        self, where: SegmentsOf, *, first: bytes | None = None, last: bytes | None = None
    ) -> Iterator[Segment]:
        """Segments in order; all, or those that may hold series from `first` to `last`, both included.

        A series may begin in a row whose own first series is below it: so the range begins with the last row whose
        first series is below `first`, and ends with the last row whose first series is not above `last`.
        """
        ...

    def write_index_bucket(self, where: IndexBucketOf, rows: Iterable[bytes], life: Lifetime) -> int:
        """Write the rows of an index bucket in order; how many there were. All are there when this returns."""
        ...

    def index_bucket(self, where: IndexBucketOf) -> Iterator[bytes]:
        """The rows of an index bucket, in order; none if it does not exist. Rows of 1 MB are read few at a time."""
        ...

    # Replay jobs and what they leave. Every change is a compare-and-set.

    def add_job(self, job: Job) -> bool:
        """Put a job in place, unless its shard has one for the bucket; whether it is there now as given."""
        ...

    def jobs(self, shard: ShardId) -> Sequence[Job]:
        """A shard's jobs by a serial read, in order of their buckets."""
        ...

    def replace_job(self, before: Job, after: Job) -> bool:
        """Put `after` in the place of `before`, if plan, state, epoch, worker, lease and renewals are still as in
        `before`.
        """
        ...

    def remove_job(self, job: Job) -> bool:
        """Take a job away, under the condition of `replace_job`; whether it is gone by this call."""
        ...

    def write_result(self, where: JobResultOf, rows: Sequence[ResultRow], life: Lifetime) -> None:
        """Write rows of a job's result; all are there when this returns."""
        ...

    def result(self, where: JobResultOf, kind: str, *, seq: int | None = None) -> Iterator[ResultRow]:
        """The rows of one kind, in order, or the one with this number."""
        ...

    # Bulk jobs and their parts. Every change is a compare-and-set. Texts have at most 64 KB: `StoreRefused`.

    def add_bulk_parts(self, parts: Sequence[BulkPart]) -> bool:
        """Put parts of one job in place, where there are none; whether all are there now as given.

        If one is found to be another, others may or may not be there.
        """
        ...

    def bulk_parts(self, dataset: str, job: str) -> Sequence[BulkPart]:
        """A job's parts by serial reads, in order of their numbers. Each is as it was at some moment of the call."""
        ...

    def bulk_part(self, dataset: str, job: str, part: int) -> BulkPart | None:
        """One part by a serial read."""
        ...

    def replace_bulk_part(self, before: BulkPart, after: BulkPart) -> bool:
        """Put `after` in the place of `before`, if state, epoch, worker, lease and renewals are still as in
        `before`.
        """
        ...

    def remove_bulk_parts(self, parts: Sequence[BulkPart]) -> bool:
        """Take those of some parts of one job away that are still as given, under the condition of
        `replace_bulk_part`; whether all of them were and are gone by this call.
        """
        ...

    def add_bulk_job(self, job: BulkJob) -> bool:
        """Put a job in place, unless there is one by this id; whether it is there now as given. All of its parts are
        there before it.
        """
        ...

    def bulk_jobs(self, dataset: str) -> Sequence[BulkJob]:
        """A dataset's jobs by serial reads, in order of their ids. Each is as it was at some moment of the call."""
        ...

    def bulk_job(self, dataset: str, job: str) -> BulkJob | None:
        """One job by a serial read."""
        ...

    def replace_bulk_job(self, before: BulkJob, after: BulkJob) -> bool:
        """Put `after` in the place of `before`, if plan, version, state, window and what is wanted are still as in
        `before`. Raises `ValueError` unless the version rises.
        """
        ...

    def remove_bulk_job(self, job: BulkJob) -> bool:
        """Take a job away, under the condition of `replace_bulk_job`; whether it is gone by this call. Its parts go
        before it: without it they would not be found.
        """
        ...
