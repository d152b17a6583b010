"""The owner's view of the buckets that workers replay: which bucket is next, and the progress.

The owner polls the states of the jobs. It does not know which workers run them, or where.
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
    """Makes sure that a worker runs while there are jobs."""

    def ensure_worker(self) -> None:
        """Start a worker if none runs. Called repeatedly while there are jobs. Never waits."""
        ...

    def close(self) -> None:
        """Release the worker, which is no longer needed. Closing twice does nothing."""
        ...


@dataclass(frozen=True, slots=True)
class ReplayBucket:
    """A bucket to replay: its committed cut, the groups without a row, and its job, or None if it has no records."""

    cut: CutRow
    groups: frozenset[int]
    job: Job | None

    @property
    def records(self) -> int:
        """The number of offsets to read."""
        return self.job.end - self.job.start if self.job is not None else 0


@dataclass(frozen=True, slots=True)
class DoneBucket:
    """A bucket whose job is done, with the job and its result; both None if there was no job."""

    bucket: ReplayBucket
    job: Job | None = None
    result: JobResult | None = None


class Replay:
    """A shard's replay by workers. Not thread-safe, except `job_states`."""

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
        """`job_lifetime` is the lifetime of a new job in milliseconds. `failures_allowed` is how often a job may fail
        and be retried.
        """
        self._store, self._shard, self._service, self._clock = store, shard, service, clock
        self._job_life, self._lease_policy = job_lifetime, LeasePolicy(failures_allowed=failures_allowed)
        self._left = deque(buckets)
        self._jobs: dict[int, Job] = {}
        # The number of jobs by state, as of the last poll. Replaced as a whole, so that any thread may read it.
        self.job_states: Mapping[JobState, int] = {}
        self._polled_at = float("-inf")
        self._all_records = max(1, sum(one.records for one in buckets))

    @property
    def is_over(self) -> bool:
        """Whether all buckets are closed."""
        return not self._left

    @property
    def fraction(self) -> float:
        """The share of the records that done jobs have read."""
        unread = sum(one.records for one in self._left if self._state(one) is not JobState.DONE)
        return 1.0 - unread / self._all_records

    def next_done(self) -> DoneBucket | None:
        """The next bucket if its job is done; the same one until `advance`. Raises `PlanStopped` if a job has failed
        for good, and the errors of the store.
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
            self.retry_job(job, "its result is missing")
        # A job that satisfies something else is another owner's: we have been fenced, and the next write will fail.
        return None

    def retry_job(self, job: Job, reason: str) -> None:
        """The result of a job can't be used: retry the job with another attempt, unless it has failed too often."""
        _LOG.warning("replay job is retried", shard=str(self._shard), bucket=job.bucket, reason=reason)
        self._store.replace_job(job, count_failure(job, reason, self._lease_policy))
        self._polled_at = float("-inf")

    def _recreate(self, job: Job) -> None:
        """Add a job again that has expired or was removed, so its result is unknown. It gets a new plan id, because
        data of its old attempts may exist. The new id keeps the old plan's time, a bound for when the new attempts
        write.
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
        """The next bucket is closed: advance to the one after it."""
        self._left.popleft()

    def remove(self, job: Job) -> None:
        """Remove a job whose bucket is stored completely. If that fails, the next owner removes it."""
        self._store.remove_job(job)

    def _poll_jobs(self) -> None:
        """Poll the jobs, at most every `_POLL_INTERVAL_S`, and make sure that a worker runs if any are open."""
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
