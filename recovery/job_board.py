"""Replay jobs in the store: every transition is one compare-and-set, so that coordinators and workers meet only there.

Whoever comes second in a race is told so by None or False. What raises is the store itself, where it can't be reached.
A change whose answer was missed is found out by looking: a lease that is still the caller's is the caller's, whatever
time it has by now.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import structlog

from strandline.clock import Clock
from strandline.errors import Fatal
from strandline.recovery.leasing import (
    LeasePolicy,
    fail,
    finish,
    is_leasable,
    is_same_lease,
    lease,
    lease_of,
    nobody_is_gone,
    release,
    renew,
    sign_of_life,
    take_back,
    told,
)
from strandline.recovery.life_watch import LifeWatch
from strandline.recovery.planning import adopt
from strandline.store.jobs import Job, JobState
from strandline.store.protocol import Store
from strandline.store.rows import ShardId

_LOG = structlog.get_logger(__name__)
# So often a change is tried again that somebody else came before. Each time, somebody else got on.
_ROUNDS = 20


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
class Standing:
    """How far the jobs of a shard are, counted in jobs and in offsets."""

    jobs: int
    done: int
    records: int
    records_done: int
    failed: tuple[Job, ...]

    @classmethod
    def of(cls, jobs: Sequence[Job]) -> "Standing":
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

    def require_going(self) -> None:
        """Raise `PlanStopped` if a job has failed for good."""
        if self.failed:
            raise PlanStopped(self.failed[0])


class JobBoard:
    """The jobs in a store. May be used by several threads and processes at once; of those of one board, one takes lost
    jobs back.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        policy: LeasePolicy | None = None,
        is_gone: Callable[[str], bool] = nobody_is_gone,
    ) -> None:
        """`is_gone` tells of a worker whether its process is known to be dead; it may always say no."""
        self.store, self.clock, self.is_gone = store, clock, is_gone
        self.policy = policy or LeasePolicy()
        self._watch = LifeWatch(clock, self.policy.lease_ms / 1000)

    def jobs(self, shard: ShardId) -> Sequence[Job]:
        """A shard's jobs, in order of their buckets."""
        return self.store.jobs(shard)

    # What a coordinator does: the shard's owner.

    def adopt(self, shard: ShardId, wanted: Sequence[Job], *, starts: bool = True) -> Sequence[Job] | None:
        """Make a shard's jobs those that are wanted, as `planning.adopt` says; the jobs as they are then.

        None if others kept changing them meanwhile. `starts` is for an owner's start; one that only adds to its plan
        leaves leases and failures as they are.
        """
        for round_number in range(_ROUNDS):
            found = self.store.jobs(shard)
            # Failures are counted from zero once: a job that fails meanwhile has failed under this owner.
            is_first = starts and round_number == 0
            steps = adopt(found, wanted, self.is_gone, starts=is_first)
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

    def take_back_lost(self, shard: ShardId) -> Sequence[Job]:
        """A shard's jobs, after those were taken back whose worker is gone, or has not renewed its lease for a whole
        term while this board looked, again and again. Nobody's wall clock counts.
        """
        found = self.store.jobs(shard)
        is_changed = False
        for job in found:
            if job.state is not JobState.LEASED:
                continue
            if self._watch.is_over((shard, job.bucket), sign_of_life(job)) or self.is_gone(job.worker):
                is_changed = True
                if self.store.replace_job(job, take_back(job, self.policy)):
                    _LOG.warning("a lease was lost", job=told(job), worker=job.worker, epoch=job.epoch)
        return self.store.jobs(shard) if is_changed else found

    def lease(self, job: Job, worker: str) -> Job | None:
        """Take a pending job; None if it is not to be had any more."""
        if job.state is not JobState.PENDING:
            return None
        leased = lease(job, worker, self.clock.now_ms(), self.policy)
        return leased if self.store.replace_job(job, leased) else None

    def renew(self, held: Job) -> Job | None:
        """Keep a job for longer: as it is then, or None if the lease is lost."""
        return self._change(held, lambda job: renew(job, held, self.clock.now_ms(), self.policy))

    def finish(self, held: Job) -> bool:
        """Say that a job is done; False if the lease is lost, and so what was done does not count."""
        return self._change(held, lambda job: finish(job, held)) is not None

    def fail(self, held: Job, reason: str) -> Job | None:
        """Say that a job has failed: as it is then, pending or failed for good, or None if the lease is lost."""
        return self._change(held, lambda job: fail(job, held, reason, self.policy))

    def release(self, held: Job, reason: str = "") -> bool:
        """Leave a job to others; False if the lease is lost."""
        return self._change(held, lambda job: release(job, held, reason)) is not None

    def _change(self, held: Job, transition: Callable[[Job], Job]) -> Job | None:
        """Apply a transition to a job that the caller holds."""
        job: Job | None = held
        for _ in range(_ROUNDS):
            if job is None:
                return None
            after = transition(job)
            if self.store.replace_job(job, after):
                return after
            # Another time on it, by a renewal whose answer was missed: still ours. Or what we wanted is there already.
            found = next((one for one in self.store.jobs(held.shard) if one.bucket == held.bucket), None)
            if found is not None and found.state is after.state is JobState.DONE and lease_of(found) == lease_of(held):
                return found
            job = found if found is not None and is_same_lease(found, held) else None
        return None
