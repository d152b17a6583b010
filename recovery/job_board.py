"""Replay jobs in the store: owners adopt plans and withdraw jobs, workers lease jobs. They coordinate only through
these rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import structlog

from strandline.clock import Clock
from strandline.errors import Fatal
from strandline.recovery.lease_board import MAX_TRIES, LeaseBoard
from strandline.recovery.leasing import LeasePolicy, is_leasable, never_gone
from strandline.recovery.planning import adopt
from strandline.store.jobs import Job, JobState
from strandline.store.protocol import Store
from strandline.store.rows import ShardId

_LOG = structlog.get_logger(__name__)


class PlanStopped(Fatal):
    """A job has failed more often than allowed. Finished jobs stay done; no further job runs until the next start."""

    def __init__(self, job: Job) -> None:
        super().__init__(
            f"the replay of {job.shard} stopped at bucket {job.bucket}, offsets [{job.start}, {job.end}), which failed"
            f" {job.failures} times; the last reason: {job.reason}",
            remedy="Fix the cause and start again: finished jobs are kept, and this job is retried",
        )
        self.job = job


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far the jobs of a shard are, in jobs and in offsets."""

    jobs: int
    done: int
    records: int
    records_done: int
    failed: tuple[Job, ...]

    @classmethod
    def of(cls, jobs: Sequence[Job]) -> "JobProgress":
        """The progress of a shard's jobs."""
        done = [job for job in jobs if job.state is JobState.DONE]
        return cls(
            jobs=len(jobs),
            done=len(done),
            records=sum(job.end - job.start for job in jobs),
            records_done=sum(job.end - job.start for job in done),
            failed=tuple(job for job in jobs if job.state is JobState.FAILED),
        )

    @property
    def is_done(self) -> bool:
        """Whether all jobs are done; true if there are none."""
        return self.done == self.jobs

    @property
    def fraction(self) -> float:
        """The share of the offsets that is done, between 0 and 1."""
        return self.records_done / self.records if self.records else 1.0

    def raise_if_stopped(self) -> None:
        """Raise `PlanStopped` if a job has failed permanently."""
        if self.failed:
            raise PlanStopped(self.failed[0])


class JobBoard(LeaseBoard[Job]):
    """The jobs in a store. Several threads and processes may use one at the same time, but only one thread of a board
    may reclaim lost jobs.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        policy: LeasePolicy | None = None,
        is_gone: Callable[[str], bool] = never_gone,
    ) -> None:
        """`is_gone` returns whether the process of a worker is known to be dead; it may always return False."""
        super().__init__(clock, policy, is_gone)
        self.store = store

    def current(self, unit: Job) -> Job | None:
        """The job for the same bucket, as stored now."""
        return next((job for job in self.store.jobs(unit.shard) if job.bucket == unit.bucket), None)

    def replace(self, before: Job, after: Job) -> bool:
        """Replace `before` by `after` if `before` is still what is stored (compare-and-set)."""
        return self.store.replace_job(before, after)

    def jobs(self, shard: ShardId) -> Sequence[Job]:
        """A shard's jobs, in order of their buckets."""
        return self.store.jobs(shard)

    # For the shard's owner.

    def adopt(self, shard: ShardId, wanted: Sequence[Job], *, is_start: bool = True) -> Sequence[Job] | None:
        """Change a shard's jobs to the wanted ones, as `planning.adopt` decides; return the resulting jobs.

        None if other processes kept changing them meanwhile. `is_start` is for an owner's start; an owner that only
        extends its plan leaves leases and failures as they are.
        """
        for round_number in range(MAX_TRIES):
            found = self.store.jobs(shard)
            # Failures are reset only in the first try: a job that fails meanwhile has failed under this owner.
            is_first = is_start and round_number == 0
            steps = adopt(found, wanted, self.is_gone, is_start=is_first)
            # A kept job may be about to expire: each write restarts its lifetime.
            kept = [job for job in steps.keep if is_leasable(job)] if is_first else []
            if steps.changes_nothing and not kept:
                return found
            for job in kept:
                self.store.replace_job(job, replace(job, renewals=job.renewals + 1))
            for job in steps.add:
                self.store.add_job(job)
            for before, after in steps.replace:
                self.store.replace_job(before, after)
            for job in steps.remove:
                self.store.remove_job(job)
        _LOG.warning("could not adopt the jobs of a shard: other processes keep changing them", shard=str(shard))
        return None

    def withdraw(self, job: Job) -> bool:
        """Remove a job whose rows are committed; return whether it was removed. A worker that has leased it loses its
        lease.
        """
        return self.store.remove_job(job)

    # For workers.

    def reclaim_lost(self, shard: ShardId) -> Sequence[Job]:
        """A shard's jobs, after reclaiming those whose worker is dead, or has not renewed its lease for a full term
        while this board watched. No wall clock is compared.
        """
        found = self.store.jobs(shard)
        return self.store.jobs(shard) if self.reclaim(found) else found
