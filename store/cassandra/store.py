"""The store in Cassandra, as one object."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from cassandra.cluster import Session

from strandline.clock import Clock
from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.store.cassandra import statements
from strandline.store.cassandra.blobs import Blobs
from strandline.store.cassandra.datasets import Datasets
from strandline.store.cassandra.jobs import bulk_jobs, bulk_parts, replay_jobs
from strandline.store.cassandra.manifest import Manifest
from strandline.store.cassandra.ownership import Owners
from strandline.store.cassandra.requests import Requests
from strandline.store.cassandra.retries import Retries, RetryPolicy
from strandline.store.cassandra.schema import create_keyspace, ensure_schema
from strandline.store.compared import require_bounded, require_later_version, require_parts_of_one_job
from strandline.store.connection import CassandraConnection, connect
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


class CassandraStore:
    """A `Store` in one keyspace of a cluster."""

    def __init__(self, requests: Requests, data_centre: str) -> None:
        """Every statement must be prepared. `data_centre` is the one that the client is connected to."""
        self._requests = requests
        self._datasets = Datasets(requests, data_centre)
        self._owners = Owners(requests)
        self._manifest = Manifest(requests)
        self._blobs = Blobs(requests)
        self._jobs = replay_jobs(requests)
        self._bulk_jobs = bulk_jobs(requests)
        self._bulk_parts = bulk_parts(requests)

    @property
    def writes_answered(self) -> int:
        """Rises with each answer to a write, including timeouts. Thread-safe."""
        return self._requests.writes_answered

    def close(self) -> None:
        self._requests.close()

    def server_time(self) -> int | None:
        # Sent to any server; it differs from call to call.
        (row,) = self._requests.read("read a server's clock", statements.SERVER_TIME, ())
        return int(row.time)

    def create_dataset(self, shape: DatasetShape) -> DatasetShape:
        return self._datasets.create(shape)

    def dataset(self, name: str) -> DatasetShape | None:
        return self._datasets.read(name)

    def state(self, shard: ShardId) -> ShardState | None:
        return self._owners.state(shard)

    def take(
        self, shard: ShardId, owner: str, after: ShardState | None, *, now: int, topic_id: str
    ) -> Ownership | None:
        self._datasets.check(shard.dataset)
        return self._owners.take(shard, owner, after, now=now, topic_id=topic_id)

    def touch(self, ownership: Ownership, seen_at: int | None, beats: int) -> None:
        self._owners.touch(ownership, seen_at, beats)

    def manifest(self, shard: ShardId, *, first: int | None = None, last: int | None = None) -> ManifestRows | None:
        return self._manifest.read(shard, first=first, last=last)

    def commit(self, ownership: Ownership, write: ManifestWrite) -> None:
        self._manifest.commit(ownership, write)

    def write_segments(self, where: SegmentsOf, segments: Sequence[Segment], lifetime: Lifetime) -> None:
        self._blobs.write_segments(where, segments, lifetime)

    def segments(
        self, where: SegmentsOf, *, first: bytes | None = None, last: bytes | None = None
    ) -> Iterator[Segment]:
        return self._blobs.segments(where, first=first, last=last)

    def write_index_bucket(self, where: IndexBucketOf, rows: Iterable[bytes], lifetime: Lifetime) -> int:
        return self._blobs.write_index_bucket(where, rows, lifetime)

    def index_bucket(self, where: IndexBucketOf) -> Iterator[bytes]:
        return self._blobs.index_bucket(where)

    def add_job(self, job: Job) -> bool:
        self._datasets.check(job.shard.dataset)
        return self._jobs.add([job])

    def jobs(self, shard: ShardId) -> Sequence[Job]:
        return self._jobs.read(f"the jobs of shard {shard}", (shard.dataset, shard.shard))

    def replace_job(self, before: Job, after: Job) -> bool:
        self._datasets.check(before.shard.dataset)
        return self._jobs.replace(before, after)

    def remove_job(self, job: Job) -> bool:
        self._datasets.check(job.shard.dataset)
        return self._jobs.remove([job])

    def write_result(self, where: JobResultOf, rows: Sequence[ResultRow], lifetime: Lifetime) -> None:
        self._blobs.write_result(where, rows, lifetime)

    def result(self, where: JobResultOf, kind: str, *, seq: int | None = None) -> Iterator[ResultRow]:
        return self._blobs.result(where, kind, seq)

    def add_bulk_parts(self, parts: Sequence[BulkPart]) -> bool:
        require_parts_of_one_job(parts)
        for part in parts:
            require_bounded(part)
        if parts:
            self._datasets.check(parts[0].dataset)
        return self._bulk_parts.add(parts)

    def bulk_parts(self, dataset: str, job: str) -> Sequence[BulkPart]:
        return self._bulk_parts.read(f"the parts of the bulk job {job} of {dataset}", (dataset, job))

    def bulk_part(self, dataset: str, job: str, part: int) -> BulkPart | None:
        what = f"part {part} of the bulk job {job} of {dataset}"
        return self._bulk_parts.read_one(what, (dataset, job, part))

    def replace_bulk_part(self, before: BulkPart, after: BulkPart) -> bool:
        require_bounded(after)
        self._datasets.check(before.dataset)
        return self._bulk_parts.replace(before, after)

    def remove_bulk_parts(self, parts: Sequence[BulkPart]) -> bool:
        require_parts_of_one_job(parts)
        if parts:
            self._datasets.check(parts[0].dataset)
        return self._bulk_parts.remove(parts)

    def add_bulk_job(self, job: BulkJob) -> bool:
        require_bounded(job)
        self._datasets.check(job.dataset)
        return self._bulk_jobs.add([job])

    def bulk_jobs(self, dataset: str) -> Sequence[BulkJob]:
        return self._bulk_jobs.read(f"the bulk jobs of {dataset}", (dataset,))

    def bulk_job(self, dataset: str, job: str) -> BulkJob | None:
        return self._bulk_jobs.read_one(f"the bulk job {job} of {dataset}", (dataset, job))

    def replace_bulk_job(self, before: BulkJob, after: BulkJob) -> bool:
        require_later_version(before, after)
        require_bounded(after)
        self._datasets.check(before.dataset)
        return self._bulk_jobs.replace(before, after)

    def remove_bulk_job(self, job: BulkJob) -> bool:
        self._datasets.check(job.dataset)
        return self._bulk_jobs.remove([job])


def open_cassandra_store(
    connection: CassandraConnection,
    clock: Clock,
    *,
    copies: Mapping[str, int] | None = None,
    retry_policy: RetryPolicy | None = None,
) -> CassandraStore:
    """Connect, create missing tables, and check their version.

    The keyspace must exist, because the number of replicas is the operator's choice; with `copies`, the number for each
    data centre, it is created. Raises `CassandraUnreachable` or `CassandraRefused` if there is no connection,
    `StoreRefused` for tables of an unsupported version, and `StoreUnavailable` if the servers don't answer.
    """
    session = connect(connection, require_keyspace=copies is None)
    try:
        return store_over(session, connection, clock, copies=copies, retry_policy=retry_policy)
    except BaseException:
        session.cluster.shutdown()
        raise


def store_over(
    session: Session,
    connection: CassandraConnection,
    clock: Clock,
    *,
    copies: Mapping[str, int] | None = None,
    retry_policy: RetryPolicy | None = None,
) -> CassandraStore:
    """Make a store over an existing session, which the store owns from then on."""
    # The servers set the timestamps of writes. A client's clock that is ahead could hide later writes of others.
    session.use_client_timestamp = False
    retries = Retries(clock, retry_policy or RetryPolicy())
    keyspace, hosts = connection.keyspace, connection.hosts
    if copies is not None:
        create_keyspace(session, keyspace, hosts, retries, copies=copies)
    requests = Requests(session, keyspace, hosts, retries)
    ensure_schema(session, keyspace, hosts, requests)
    return CassandraStore(requests, connection.local_datacenter)
