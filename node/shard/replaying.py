"""The buckets of a shard that workers replay, as their owner sees them: which is done next, and how far it is.

The owner reads the jobs' states now and then; who works on them, and where, it does not know.
"""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import structlog

from strandline.clock import Clock
from strandline.recovery.job_board import PlanStopped
from strandline.recovery.leasing import LeasePolicy, count_failure
from strandline.recovery.plan_id import new_plan_id, planned_at
from strandline.recovery.planning import satisfies
from strandline.recovery.replay.job_result import JobResult
from strandline.recovery.replay.result_codec import read_result
from strandline.recovery.replay.sections import ResultDamaged
from strandline.store.jobs import Job, JobState
from strandline.store.protocol import Store
from strandline.store.rows import CutRow, ShardId

_LOG = structlog.get_logger(__name__)
_POLL_INTERVAL_S = 0.5


class ReplayService(Protocol):
    """Sees to it that somebody works on jobs."""

    def ensure_worker(self) -> None:
        """There are jobs: start a worker if none runs. Called again and again, and never waits."""
        ...

    def close(self) -> None:
        """Nobody needs the worker any more. Closing twice does nothing."""
        ...


@dataclass(frozen=True, slots=True)
class ReplayBucket:
    """A bucket to be replayed: its committed cut, the groups without a row, and the job that reads it; no job where
    there is no record to read.
    """

    cut: CutRow
    groups: frozenset[int]
    job: Job | None

    @property
    def records(self) -> int:
        """How many offsets there are to read."""
        return self.job.end - self.job.start if self.job is not None else 0


@dataclass(frozen=True, slots=True)
class DoneBucket:
    """A bucket whose job is done, with the job as it was then and its result; neither where there was no job."""

    bucket: ReplayBucket
    job: Job | None = None
    result: JobResult | None = None


class Replay:
    """A shard's replay by others. One thread calls it."""

    def __init__(
        self,
        store: Store,
        shard: ShardId,
        buckets: Sequence[ReplayBucket],
        service: ReplayService,
        clock: Clock,
        *,
        job_lifetime: int,
        failures_allowed: int,
    ) -> None:
        """`job_lifetime` is the lifetime of a newly planned job in milliseconds, and `failures_allowed` how often a job
        may fail and be retried.
        """
        self._store, self._shard, self._service, self._clock = store, shard, service, clock
        self._job_life, self._lease_policy = job_lifetime, LeasePolicy(failures_allowed=failures_allowed)
        self._left = deque(buckets)
        self._jobs: dict[int, Job] = {}
        # How many jobs are in which state, as of the last look. Replaced whole, so that any thread may read it.
        self.job_states: Mapping[JobState, int] = {}
        self._polled_at = float("-inf")
        self._all_records = max(1, sum(one.records for one in buckets))

    @property
    def is_over(self) -> bool:
        """Whether every bucket is closed."""
        return not self._left

    @property
    def fraction(self) -> float:
        """How much of the records is read, by the jobs that are done."""
        unread = sum(one.records for one in self._left if self._state(one) is not JobState.DONE)
        return 1.0 - unread / self._all_records

    def next_done(self) -> DoneBucket | None:
        """The next bucket, if its job is done; the same one until `advance`. Raises `PlanStopped` once a job has failed
        for good, and what keeps the store from being read.
        """
        if not self._left:
            return None
        bucket = self._left[0]
        if bucket.job is None:
            return DoneBucket(bucket)
        self._poll_jobs()
        job = self._jobs.get(bucket.cut.bucket)
        if job is None:
            self._recreate(bucket.job)
        elif job.state is JobState.DONE and satisfies(job, bucket.job):
            try:
                result = read_result(self._store, job)
            except ResultDamaged as error:
                self.retry_job(job, str(error))
                return None
            if result is not None:
                return DoneBucket(bucket, job, result)
            self.retry_job(job, "its result is gone")
        # One that satisfies something else is another owner's: ours has ended, as the next write will tell.
        return None

    def retry_job(self, job: Job, reason: str) -> None:
        """What a job left can't be used: it is done again, under another attempt, unless that was so too often."""
        _LOG.warning("a job is done again", shard=str(self._shard), bucket=job.bucket, reason=reason)
        self._store.replace_job(job, count_failure(job, reason, self._lease_policy))
        self._polled_at = float("-inf")

    def _recreate(self, job: Job) -> None:
        """It expired, or somebody took it away: what it did is not known any more. As one of another plan, since its
        old attempts may be there; its time is still a bound for when the new ones write.
        """
        self._store.add_job(
            replace(
                job,
                plan=new_plan_id(planned_at(job.plan)),
                life=self._job_life,
                state=JobState.PENDING,
                epoch=0,
                worker="",
                leased_until=0,
                failures=0,
                reason="",
                renewals=0,
            )
        )
        self._polled_at = float("-inf")

    def advance(self) -> None:
        """The next bucket is closed: go on to the one behind it."""
        self._left.popleft()

    def remove(self, job: Job) -> None:
        """Every row of a job's bucket is committed: the job goes. If that fails the next owner drops it."""
        self._store.remove_job(job)

    def _poll_jobs(self) -> None:
        """Read the jobs, not more often than needed; have somebody work on them."""
        now = self._clock.monotonic()
        if now - self._polled_at < _POLL_INTERVAL_S:
            return
        self._polled_at = now
        self._jobs = {job.bucket: job for job in self._store.jobs(self._shard)}
        self.job_states = Counter(job.state for job in self._jobs.values())
        failed = next((job for job in self._jobs.values() if job.state is JobState.FAILED), None)
        if failed is not None:
            raise PlanStopped(failed)
        if any(job.state is not JobState.DONE for job in self._jobs.values()):
            self._service.ensure_worker()

    def _state(self, bucket: ReplayBucket) -> JobState:
        job = self._jobs.get(bucket.cut.bucket)
        return JobState.DONE if bucket.job is None else job.state if job is not None else JobState.PENDING
