"""Replay jobs, bulk jobs and their parts, for tests of the guarantees for rows that only change by compare-and-set."""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from strandline.store.bulk_jobs import BulkJob, BulkJobState, BulkPart
from strandline.store.compared import ComparedRow
from strandline.store.jobs import Job, JobState
from strandline.store.protocol import Store
from support.store_contract import LASTING, fresh_shard

R = TypeVar("R", bound=ComparedRow)


def bulk_job(dataset: str, number: int, *, life: int = LASTING, plan_hash: str = "hash-1") -> BulkJob:
    """A newly planned job."""
    return BulkJob(
        dataset, f"job-{number:06}", "import", '{"uri": "a"}', plan_hash, 3, life, created_at=1_700_000_000_000
    )


def bulk_part(dataset: str, number: int, *, life: int = LASTING, source: str = '{"from": 0}') -> BulkPart:
    """A part that waits for a worker."""
    return BulkPart(dataset, "job-1", number, source, life)


def fresh_dataset() -> str:
    return f"dataset-{uuid.uuid4().hex}"


class Kind(ABC, Generic[R]):
    """The rows of one table, and the store's calls for them."""

    table: str

    @abstractmethod
    def fresh(self, *, life: int = LASTING) -> R:
        """A row in a partition that no test has used."""

    @abstractmethod
    def beside(self, row: R, number: int) -> R:
        """Another row of the same partition; rows with higher numbers come later."""

    @abstractmethod
    def other(self, row: R, number: int = 2) -> R:
        """A different row with the same key."""

    @abstractmethod
    def changed(self, row: R, by: str) -> R:
        """The row after a change."""

    @abstractmethod
    def read(self, store: Store, row: R) -> Sequence[R]:
        """All rows of a row's partition."""

    @abstractmethod
    def read_one(self, store: Store, row: R) -> R | None: ...

    @abstractmethod
    def add(self, store: Store, row: R) -> bool: ...

    @abstractmethod
    def replace(self, store: Store, before: R, after: R) -> bool: ...

    @abstractmethod
    def remove(self, store: Store, row: R) -> bool: ...


class ReplayJobs(Kind[Job]):
    table = "jobs"

    def fresh(self, *, life: int = LASTING) -> Job:
        return Job(fresh_shard(), 5, "plan-1", 0, 10, frozenset({0}), wants_keys=True, life=life)

    def beside(self, row: Job, number: int) -> Job:
        return replace(row, bucket=number)

    def other(self, row: Job, number: int = 2) -> Job:
        return replace(row, plan=f"plan-{number}")

    def changed(self, row: Job, by: str) -> Job:
        return replace(row, state=JobState.LEASED, epoch=row.epoch + 1, worker=by, leased_until=120_000)

    def read(self, store: Store, row: Job) -> Sequence[Job]:
        return store.jobs(row.shard)

    def read_one(self, store: Store, row: Job) -> Job | None:
        return next((job for job in store.jobs(row.shard) if job.bucket == row.bucket), None)

    def add(self, store: Store, row: Job) -> bool:
        return store.add_job(row)

    def replace(self, store: Store, before: Job, after: Job) -> bool:
        return store.replace_job(before, after)

    def remove(self, store: Store, row: Job) -> bool:
        return store.remove_job(row)


class BulkJobs(Kind[BulkJob]):
    table = "bulk_jobs"

    def fresh(self, *, life: int = LASTING) -> BulkJob:
        return bulk_job(fresh_dataset(), 5, life=life)

    def beside(self, row: BulkJob, number: int) -> BulkJob:
        return replace(row, job=f"job-{number:06}")

    def other(self, row: BulkJob, number: int = 2) -> BulkJob:
        return replace(row, plan_hash=f"hash-{number}")

    def changed(self, row: BulkJob, by: str) -> BulkJob:
        return replace(row, state=BulkJobState.RUNNING, version=row.version + 1, reason=by)

    def read(self, store: Store, row: BulkJob) -> Sequence[BulkJob]:
        return store.bulk_jobs(row.dataset)

    def read_one(self, store: Store, row: BulkJob) -> BulkJob | None:
        return store.bulk_job(row.dataset, row.job)

    def add(self, store: Store, row: BulkJob) -> bool:
        return store.add_bulk_job(row)

    def replace(self, store: Store, before: BulkJob, after: BulkJob) -> bool:
        return store.replace_bulk_job(before, after)

    def remove(self, store: Store, row: BulkJob) -> bool:
        return store.remove_bulk_job(row)


class BulkParts(Kind[BulkPart]):
    table = "bulk_parts"

    def fresh(self, *, life: int = LASTING) -> BulkPart:
        return bulk_part(fresh_dataset(), 5, life=life)

    def beside(self, row: BulkPart, number: int) -> BulkPart:
        return replace(row, part=number)

    def other(self, row: BulkPart, number: int = 2) -> BulkPart:
        return replace(row, source=f'{{"from": {number}}}')

    def changed(self, row: BulkPart, by: str) -> BulkPart:
        return replace(row, state=JobState.LEASED, epoch=row.epoch + 1, worker=by, leased_until=120_000)

    def read(self, store: Store, row: BulkPart) -> Sequence[BulkPart]:
        return store.bulk_parts(row.dataset, row.job)

    def read_one(self, store: Store, row: BulkPart) -> BulkPart | None:
        return store.bulk_part(row.dataset, row.job, row.part)

    def add(self, store: Store, row: BulkPart) -> bool:
        return store.add_bulk_parts([row])

    def replace(self, store: Store, before: BulkPart, after: BulkPart) -> bool:
        return store.replace_bulk_part(before, after)

    def remove(self, store: Store, row: BulkPart) -> bool:
        return store.remove_bulk_parts([row])
