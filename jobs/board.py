"""Bulk jobs and their parts in the store. Every change is one compare-and-set, so workers and operators need no other
coordination.
"""

from collections.abc import Callable, Sequence

from strandline.clock import Clock
from strandline.errors import ExitCode, Fatal, Retryable
from strandline.recovery.lease_board import MAX_TRIES, LeaseBoard
from strandline.recovery.leasing import LeasePolicy, never_gone
from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.store.protocol import Store


class NoSuchJob(Fatal):
    """The dataset has no job with this id."""

    exit_code = ExitCode.USAGE


class JobExists(Fatal):
    """The dataset has another job with this id."""


class JobContended(Retryable):
    """Concurrent changes of the job kept winning the compare-and-set."""


class BulkBoard(LeaseBoard[BulkPart]):
    """The jobs of a dataset. Thread-safe, except that only one thread of a board may take back lost leases."""

    def __init__(
        self,
        store: Store,
        dataset: str,
        clock: Clock,
        policy: LeasePolicy | None = None,
        is_gone: Callable[[str], bool] = never_gone,
    ) -> None:
        super().__init__(clock, policy, is_gone)
        self.store, self.dataset = store, dataset

    def current(self, unit: BulkPart) -> BulkPart | None:
        return self.store.bulk_part(*unit.primary_key)

    def replace(self, before: BulkPart, after: BulkPart) -> bool:
        return self.store.replace_bulk_part(before, after)

    def add(self, job: BulkJob, parts: Sequence[BulkPart]) -> None:
        """Store a plan: the parts first, so that no worker sees a job without them. Storing the same plan again
        changes nothing. Raises `JobExists` if the id has another plan.
        """
        if len(parts) != job.parts:
            raise ValueError(f"{job.name} has {job.parts} parts by its plan, but {len(parts)} were given")
        if not self.store.add_bulk_parts(parts) or not self.store.add_bulk_job(job):
            raise JobExists(f"{job.dataset} already has another job {job.job}", remedy="Plan it under another id")

    def jobs(self) -> Sequence[BulkJob]:
        """All jobs, oldest plan first."""
        return self.store.bulk_jobs(self.dataset)

    def job(self, job: str) -> BulkJob:
        """The job with this id. Raises `NoSuchJob`."""
        found = self.store.bulk_job(self.dataset, job)
        if found is None:
            raise NoSuchJob(f"dataset {self.dataset} has no job {job}", remedy="`strandline job list` shows them")
        return found

    def parts(self, job: BulkJob) -> Sequence[BulkPart]:
        """The parts of a job, by number."""
        return self.store.bulk_parts(job.dataset, job.job)

    def reclaim_lost(self, job: BulkJob) -> Sequence[BulkPart]:
        """Take back the parts whose worker is gone, or whose lease has not been renewed during one lease term of
        repeated calls, by this process's monotonic clock. Returns the job's parts afterwards.
        """
        found = self.parts(job)
        return self.parts(job) if self.reclaim(found) else found

    def change(self, job: BulkJob, transition: Callable[[BulkJob], BulkJob]) -> BulkJob:
        """Apply a transition to the newest version of a job, and return the result. Raises what the transition raises,
        `NoSuchJob`, and `JobContended`.
        """
        for _ in range(MAX_TRIES):
            after = transition(job)
            if after == job or self.store.replace_bulk_job(job, after):
                return after
            job = self.job(job.job)
        raise JobContended(
            f"{job.name} could not be changed: {MAX_TRIES} attempts met concurrent changes", remedy="Try again"
        )

    def change_once(self, job: BulkJob, transition: Callable[[BulkJob], BulkJob]) -> BulkJob:
        """Apply a transition that also depends on rows read before, such as parts: only if the job has not changed
        since. Returns the job afterwards, changed by this call or by others.
        """
        after = transition(job)
        return after if after == job or self.store.replace_bulk_job(job, after) else self.job(job.job)
