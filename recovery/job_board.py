"""Replay jobs in the store: plans are adopted, jobs leased and withdrawn, and coordinators and workers meet only
there.
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
    """A job has failed more often than allowed. What is done stays done; nothing more is tried until a new start."""

    def __init__(self, job: Job) -> None:
        super().__init__(
            f"the replay of {job.shard} stopped at bucket {job.bucket}, offsets [{job.start}, {job.end}), which failed"
            f" {job.failures} times; at last: {job.reason}",
            remedy="Mend the cause and start again: what is done is kept, and this job is tried anew",
        )
        self.job = job


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far the jobs of a shard are, counted in jobs and in offsets."""

    jobs: int
    done: int
    records: int
    records_done: int
    failed: tuple[Job, ...]

    @classmethod
    def of(cls, jobs: Sequence[Job]) -> "JobProgress":
        """The standing of a shard's jobs."""
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
        """Whether nothing is left; so it is where nothing was planned."""
        return self.done == self.jobs

    @property
    def fraction(self) -> float:
        """How much is done, between 0 and 1."""
        return self.records_done / self.records if self.records else 1.0

    def raise_if_stopped(self) -> None:
        """Raise `PlanStopped` if a job has failed for good."""
        if self.failed:
            raise PlanStopped(self.failed[0])


class JobBoard(LeaseBoard[Job]):
    """The jobs in a store. May be used by several threads and processes at once; of those of one board, one takes lost
    jobs back.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        policy: LeasePolicy | None = None,
        is_gone: Callable[[str], bool] = never_gone,
    ) -> None:
        """`is_gone` tells of a worker whether its process is known to be dead; it may always say no."""
        super().__init__(clock, policy, is_gone)
        self.store = store

    def current(self, unit: Job) -> Job | None:
        """The job for a job's bucket, as it is in the store."""
        return next((job for job in self.store.jobs(unit.shard) if job.bucket == unit.bucket), None)

    def replace(self, before: Job, after: Job) -> bool:
        """Put `after` in the place of `before`, if that is still as it was."""
        return self.store.replace_job(before, after)

    def jobs(self, shard: ShardId) -> Sequence[Job]:
        """A shard's jobs, in order of their buckets."""
        return self.store.jobs(shard)

    # What a coordinator does: the shard's owner.

    def adopt(self, shard: ShardId, wanted: Sequence[Job], *, is_start: bool = True) -> Sequence[Job] | None:
        """Make a shard's jobs those that are wanted, as `planning.adopt` says; the jobs as they are then.

        None if others kept changing them meanwhile. `is_start` is for an owner's start; one that only adds to its plan
        leaves leases and failures as they are.
        """
        for round_number in range(MAX_TRIES):
            found = self.store.jobs(shard)
            # Failures are counted from zero once: a job that fails meanwhile has failed under this owner.
            is_first = is_start and round_number == 0
            steps = adopt(found, wanted, self.is_gone, is_start=is_first)
            # It may be the last hour of a job that is kept: each write gives it its whole life again.
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
        _LOG.warning("the jobs of a shard are changed by somebody else again and again", shard=str(shard))
        return None

    def withdraw(self, job: Job) -> bool:
        """Take a job away because its rows are committed; whether it is gone. A lease of it is lost by that."""
        return self.store.remove_job(job)

    # What a worker does.

    def reclaim_lost(self, shard: ShardId) -> Sequence[Job]:
        """A shard's jobs, after those were taken back whose worker is gone, or has not renewed its lease for a whole
        term while this board looked, again and again. No wall clock counts.
        """
        found = self.store.jobs(shard)
        return self.store.jobs(shard) if self.reclaim(found) else found
