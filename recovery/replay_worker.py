"""A worker: takes the most urgent jobs of some shards, has them run, and records the results.

Any number of workers may work on the same shards. Nothing that a worker does under a lost lease has an effect: what it
wrote has an attempt that no row will reference.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog

from strandline.clock import Clock
from strandline.errors import Retryable
from strandline.recovery.failure_tracking import Backoff, FailureTracker
from strandline.recovery.job_board import JobBoard
from strandline.recovery.job_order import JobOrder
from strandline.recovery.lease_keeper import LeaseKeeper
from strandline.recovery.leasing import LeaseLost, LeasePolicy, describe, is_open, never_gone, suspect_reason
from strandline.recovery.replay.job_settings import IncompatibleJob
from strandline.recovery.replay.runner import JobRunner, ReplayFailed, ReplayStalled, SessionLost
from strandline.recovery.waves import MAX_JOBS, next_wave, without_followers
from strandline.store.jobs import Job, JobState
from strandline.store.protocol import Store
from strandline.store.rows import ShardId

_LOG = structlog.get_logger(__name__)
_POLL_S = 1.0
STALL_S = 900.0
"""A run of which no part finishes for this long is cancelled. A wave's tasks take seconds, or a few minutes."""


class WorkerStopped(Retryable):
    """The worker was asked to stop."""


@dataclass(frozen=True, slots=True)
class WaveProgress:
    """The jobs that a worker runs together, and the share of them that is done. The share is 1.0 only for jobs that are
    marked as done.
    """

    jobs: tuple[Job, ...]
    fraction: float


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The size of a wave in offsets and in jobs, the policy of leases, and the seconds without progress after which a
    run is cancelled.
    """

    wave_records: int = 2_000_000
    policy: LeasePolicy = field(default_factory=LeasePolicy)
    wave_jobs: int = MAX_JOBS
    stall_s: float = STALL_S


class ReplayWorker:
    """One worker, for one thread."""

    def __init__(
        self,
        store: Store,
        shards: Sequence[ShardId],
        runner: JobRunner,
        clock: Clock,
        name: str,
        *,
        job_order: JobOrder,
        options: WorkerOptions | None = None,
        is_gone: Callable[[str], bool] = never_gone,
        on_progress: Callable[[WaveProgress], None] = lambda _progress: None,
    ) -> None:
        """`name` identifies this process, so that others can determine whether it lives (see `worker_identity`)."""
        self._options = options or WorkerOptions()
        self._board = JobBoard(store, clock, self._options.policy, is_gone)
        self._shards, self._runner, self._clock, self._name = tuple(shards), runner, clock, name
        self._job_order, self._on_progress = job_order, on_progress
        self._failures = FailureTracker(clock, self._options.policy.failures_allowed)
        # Used while the rows of the jobs can't be read.
        self._backoff = Backoff(clock)
        self._left_to_others: set[tuple[ShardId, int]] = set()

    def run_until_done(self, stop: Callable[[], bool] = lambda: False, idle_s: float = 0.0) -> None:
        """Work until there was nothing to do for `idle_s`, or until `stop` returns True.

        Jobs that others have leased are waited for, because they may become pending again. A shard with a permanently
        failed job counts as having nothing to do; its owner reports why. Raises `SessionLost` if the runner can't
        continue.
        """
        idle_since: float | None = None
        while not stop():
            try:
                if self.step(stop):
                    idle_since = None
                    continue
                is_idle = not self._has_open_jobs()
            except Retryable as error:
                _LOG.warning("can't read the replay jobs", error=str(error))
                is_idle = False
                self._backoff.begin()
            now = self._clock.monotonic()
            if not is_idle:
                idle_since = None
            elif idle_since is None:
                idle_since = now
            if idle_since is not None and now - idle_since >= idle_s:
                return
            self._clock.sleep(_POLL_S)

    def step(self, stop: Callable[[], bool] = lambda: False) -> bool:
        """Take one wave and run it; False if there is nothing to take, or it is too soon after a failure.

        A job runs only once per lease: the next run may divide it differently, and the results of two runs must not
        mix.
        """
        if not self._backoff.is_over:
            return False
        wave = self._take_wave()
        if not wave:
            return False
        # Twice the stall time: as long as the runner reports anything, the run is cancelled before that.
        keeper = LeaseKeeper(self._board, wave, max_silence_s=2 * self._options.stall_s)
        try:
            with keeper.keeping():
                self._run(wave, keeper, stop)
        finally:
            # However the run ended, unfinished jobs are available to others immediately.
            keeper.release_all()
        return True

    def _take_wave(self) -> list[Job]:
        by_shard = {shard: self._board.reclaim_lost(shard) for shard in self._shards}
        self._failures.update(job for jobs in by_shard.values() for job in jobs)
        going = [
            self._compatible(jobs)
            for shard, jobs in by_shard.items()
            if not _has_stopped(jobs) and not self._failures.is_backing_off(shard)
        ]
        wave = next_wave(
            self._job_order.ordered(job for jobs in going for job in jobs),
            self._options.wave_records,
            self._options.wave_jobs,
            runs_alone=self._failures.runs_alone,
            is_suspect=self._failures.is_suspect,
            max_suspects=self._failures.max_suspects,
            is_isolated=self._failures.is_isolated,
        )
        leased: list[Job] = []
        while wave:
            job = self._board.lease(wave[0], self._name)
            if job is None:
                wave = without_followers(wave, wave[0])
            else:
                leased.append(job)
                wave = wave[1:]
        # The store has answered.
        self._backoff = Backoff(self._clock)
        return leased

    def _compatible(self, jobs: Sequence[Job]) -> list[Job]:
        """The jobs that the runner can do exactly as their owner would. The others are left to other workers."""
        found: list[Job] = []
        for job in jobs:
            try:
                self._runner.check(job)
            except IncompatibleJob as error:
                if (job.shard, job.bucket) not in self._left_to_others:
                    _LOG.warning("left a job to another worker", error=str(error))
                self._left_to_others.add((job.shard, job.bucket))
            else:
                found.append(job)
        return found

    def _run(self, wave: Sequence[Job], keeper: LeaseKeeper[Job], stop: Callable[[], bool]) -> None:
        if len(wave) > 1:
            _LOG.info("running a wave", jobs=len(wave), records=sum(job.end - job.start for job in wave))
        error = self._run_and_finish(wave, keeper, stop)
        if error is None or stop() or isinstance(error, LeaseLost):
            return
        try:
            self._release_failed(wave, keeper, error)
        finally:
            # Even if the store could not be updated.
            if isinstance(error, SessionLost):
                raise error

    def _run_and_finish(
        self, wave: Sequence[Job], keeper: LeaseKeeper[Job], stop: Callable[[], bool]
    ) -> Exception | None:
        """Run jobs together and mark them as done one by one; return the error if there was one."""
        best, best_at = 0.0, self._clock.monotonic()

        def on_progress(fraction: float) -> None:
            nonlocal best, best_at
            if stop():
                raise WorkerStopped(f"worker {self._name} was asked to stop")
            if not keeper.held(wave):
                raise LeaseLost(f"{describe(wave[0])} and the jobs run with it are no longer leased to {self._name}")
            now = self._clock.monotonic()
            if fraction > best:
                best, best_at = fraction, now
                keeper.note_progress()
            elif now - best_at >= self._options.stall_s:
                raise ReplayStalled(
                    f"{describe(wave[0])} and the jobs run with it made no progress for {now - best_at:.0f} s,"
                    f" at {best:.0%}",
                    remedy="Check what Spark, Kafka and the store are waiting for. The jobs are retried automatically",
                )
            if fraction < 1.0:
                self._on_progress(WaveProgress(tuple(wave), fraction))

        done: list[Job] = []
        error: Exception | None = None
        try:
            self._runner.run(wave, on_progress)
            done.extend(job for job in wave if keeper.finish(job))
        except Exception as raised:  # noqa: BLE001 - a job may fail with any error, which is reported to its owner
            error = raised
        else:
            self._failures.done(wave)
        if done:
            self._on_progress(WaveProgress(tuple(done), 1.0))
        return error

    def _release_failed(self, wave: Sequence[Job], keeper: LeaseKeeper[Job], error: Exception) -> None:
        reason = _describe_error(error)
        if _is_temporary(error):
            # Not caused by the jobs: they are released without counting a failure, and retried later.
            _LOG.warning("could not run jobs for a temporary reason; they were released", jobs=len(wave), error=reason)
            self._failures.unreachable(wave)
            keeper.release_all(reason)
        elif len(wave) > 1:
            _LOG.warning("a wave failed; one of its jobs will run alone next", jobs=len(wave), error=reason)
            self._failures.failed_together(keeper.held(wave))
            keeper.release_all(suspect_reason(reason))
        else:
            _LOG.warning("a job failed", job=describe(wave[0]), error=reason)
            self._failures.failed_alone(wave[0])
            keeper.fail(wave[0], reason)

    def _has_open_jobs(self) -> bool:
        jobs = [jobs for jobs in map(self._board.jobs, self._shards) if not _has_stopped(jobs)]
        return any(is_open(job) for of_shard in jobs for job in of_shard)


def _is_temporary(error: Exception) -> bool:
    """Whether the cause of an error is unrelated to the jobs, for example if the store is unreachable. Runs that were
    given up count as failures: they have tried for a long time, and it is unknown whether a job was the cause.
    """
    return isinstance(error, Retryable) and not isinstance(error, ReplayFailed)


def _has_stopped(jobs: Sequence[Job]) -> bool:
    return any(job.state is JobState.FAILED for job in jobs)


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
