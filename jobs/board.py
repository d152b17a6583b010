"""Bulk jobs and their parts in the store: every change is one compare-and-set, so that workers and operators meet only
there.
"""

from collections.abc import Callable, Sequence

from strandline.clock import Clock
from strandline.errors import ExitCode, Fatal, Retryable
from strandline.recovery.lease_board import MAX_TRIES, LeaseBoard
from strandline.recovery.leasing import LeasePolicy, never_gone
from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.store.protocol import Store


class NoSuchJob(Fatal):
    """The dataset has no job by this id."""

    exit_code = ExitCode.USAGE


class JobExists(Fatal):
    """The dataset has another job by this id."""


class JobContended(Retryable):
    """Others kept changing a job while it was to be changed."""


class BulkBoard(LeaseBoard[BulkPart]):
    """The jobs of a dataset. May be used by several threads; of those of one board, one takes lost leases back."""

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
        """Put a plan into the store: the parts first, so that no worker sees a job without them. A plan that is there
        already is left as it is; raises `JobExists` for another one.
        """
        if len(parts) != job.parts:
            raise ValueError(f"{job.name} is to have {job.parts} parts, and {len(parts)} were given")
        if not self.store.add_bulk_parts(parts) or not self.store.add_bulk_job(job):
            raise JobExists(f"there is another job {job.job} of {job.dataset}", remedy="Plan it under another id")

    def jobs(self) -> Sequence[BulkJob]:
        """All jobs, in the order in which they were planned."""
        return self.store.bulk_jobs(self.dataset)

    def job(self, job: str) -> BulkJob:
        """One of them. Raises `NoSuchJob`."""
        found = self.store.bulk_job(self.dataset, job)
        if found is None:
            raise NoSuchJob(f"there is no job {job} of {self.dataset}", remedy="`strandline job list` shows them")
        return found

    def parts(self, job: BulkJob) -> Sequence[BulkPart]:
        """The parts of a job, by their numbers."""
        return self.store.bulk_parts(job.dataset, job.job)

    def reclaim_lost(self, job: BulkJob) -> Sequence[BulkPart]:
        """A job's parts, after those were taken back whose worker is gone, or has not renewed its lease for a whole
        term while this board looked, again and again. No wall clock counts.
        """
        found = self.parts(job)
        return self.parts(job) if self.reclaim(found) else found

    def change(self, job: BulkJob, transition: Callable[[BulkJob], BulkJob]) -> BulkJob:
        """Apply a transition to a job, as it is by now; the job as it is then. Raises what the transition raises,
        `NoSuchJob`, and `JobContended`.
        """
        for _ in range(MAX_TRIES):
            after = transition(job)
            if after == job or self.store.replace_bulk_job(job, after):
                return after
            job = self.job(job.job)
        raise JobContended(f"{job.name} is changed by others again and again", remedy="Try again")

    def change_once(self, job: BulkJob, transition: Callable[[BulkJob], BulkJob]) -> BulkJob:
        """Apply a transition that depends on more than the job, such as its parts: only to the job as it was when those
        were read. If others have changed it since, it stays as they have left it. The job as it is then.
        """
        after = transition(job)
        return after if after == job or self.store.replace_bulk_job(job, after) else self.job(job.job)
