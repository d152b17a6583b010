"""A worker: takes the most urgent jobs of some shards, has them read, and says what became of them.

Any number of workers may be at work on the same shards. Whatever a worker does under a lease that was lost changes
nothing: it wrote under an attempt that nobody will name.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog

from strandline.clock import Clock
from strandline.errors import Retryable
from strandline.recovery.job_board import JobBoard
from strandline.recovery.lease_keeper import LeaseKeeper
from strandline.recovery.leasing import LeaseLost, LeasePolicy, is_open, nobody_is_gone, told
from strandline.recovery.replay.runner import JobRunner, ReplayFailed
from strandline.recovery.urgency import Urgency
from strandline.recovery.waves import next_wave, without_followers
from strandline.store.jobs import Job, JobState
from strandline.store.protocol import Store
from strandline.store.rows import ShardId

_LOG = structlog.get_logger(__name__)
# How long to wait before the next try after something failed that may pass; doubling.
_LEAST_PAUSE_S, _MOST_PAUSE_S = 1.0, 60.0
_POLL_S = 1.0


class WorkerStopped(Retryable):
    """Somebody wants the worker to end."""


@dataclass(frozen=True, slots=True)
class WaveProgress:
    """What a worker is doing: the jobs that it reads together, and how much of that is done."""

    jobs: tuple[Job, ...]
    fraction: float


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How much is read in one go, in offsets, and how leases are dealt with."""

    wave_records: int = 2_000_000
    policy: LeasePolicy = field(default_factory=LeasePolicy)


class ReplayWorker:
    """One worker, driven by one thread."""

    def __init__(
        self,
        store: Store,
        shards: Sequence[ShardId],
        runner: JobRunner,
        clock: Clock,
        name: str,
        *,
        urgency: Urgency,
        options: WorkerOptions | None = None,
        is_gone: Callable[[str], bool] = nobody_is_gone,
        on_progress: Callable[[WaveProgress], None] = lambda _progress: None,
    ) -> None:
        """`name` is that of this process, by which others tell whether it lives (see `worker_identity`)."""
        self._options = options or WorkerOptions()
        self._board = JobBoard(store, clock, self._options.policy, is_gone)
        self._shards, self._runner, self._clock, self._name = tuple(shards), runner, clock, name
        self._urgency, self._on_progress = urgency, on_progress
        self._pause_s = 0.0
        self._paused_until = 0.0

    def run_until_done(self, stop: Callable[[], bool] = lambda: False, idle_s: float = 0.0) -> None:
        """Work until nothing has been left to do for so long, or until told to stop.

        Jobs that others have leased are waited for: they may come back. A shard with a job that failed for good has
        nothing to do any more; its owner tells why.
        """
        idle_since: float | None = None
        while not stop():
            try:
                if self.step(stop):
                    idle_since = None
                    continue
                is_idle = not self._is_something_open()
            except Retryable as error:
                _LOG.warning("the jobs can't be read", error=str(error))
                is_idle = False
                self._back_off()
            now = self._clock.monotonic()
            if not is_idle:
                idle_since = None
            elif idle_since is None:
                idle_since = now
            if idle_since is not None and now - idle_since >= idle_s:
                return
            self._clock.sleep(_POLL_S)

    def step(self, stop: Callable[[], bool] = lambda: False) -> bool:
        """Take one wave and run it; False if there was nothing to take, or it is too soon after a failure."""
        if self._clock.monotonic() < self._paused_until:
            return False
        wave = self._take_wave()
        if not wave:
            return False
        keeper = LeaseKeeper(self._board, wave)
        try:
            with keeper.keeping():
                self._run(wave, keeper, stop)
        finally:
            # Whatever ended this: what was not done is free for others at once.
            keeper.release_all()
        return True

    def _take_wave(self) -> list[Job]:
        going = [jobs for jobs in map(self._board.take_back_lost, self._shards) if not _has_stopped(jobs)]
        ordered = self._urgency.ordered(job for jobs in going for job in jobs)
        wave = next_wave(ordered, self._options.wave_records)
        leased: list[Job] = []
        while wave:
            job = self._board.lease(wave[0], self._name)
            if job is None:
                wave = without_followers(wave, wave[0])
            else:
                leased.append(job)
                wave = wave[1:]
        return leased

    def _run(self, wave: Sequence[Job], keeper: LeaseKeeper, stop: Callable[[], bool]) -> None:
        if len(wave) > 1:
            _LOG.info("a wave is read", jobs=len(wave), records=sum(job.end - job.start for job in wave))
            error = self._try(wave, keeper, stop)
            if error is None or stop():
                return
            if _may_pass(error):
                self._leave(keeper, error)
                return
            _LOG.warning("a wave has failed; its jobs are read one by one", jobs=len(wave), error=_told_of(error))
        for job in wave:
            if not keeper.held([job]):
                continue
            error = self._try([job], keeper, stop)
            if stop():
                return
            if error is None or isinstance(error, LeaseLost):
                continue
            if _may_pass(error):
                self._leave(keeper, error)
                return
            _LOG.warning("a job has failed", job=told(job), error=_told_of(error))
            keeper.fail(job, _told_of(error))
            self._back_off()

    def _try(self, jobs: Sequence[Job], keeper: LeaseKeeper, stop: Callable[[], bool]) -> Exception | None:
        """Run jobs together and mark them as done, one by one; or what went wrong."""

        def heard(fraction: float) -> None:
            if stop():
                raise WorkerStopped(f"worker {self._name} is to stop")
            if not keeper.held(jobs):
                raise LeaseLost(f"{told(jobs[0])} and all that was read with it is no longer leased to {self._name}")
            self._on_progress(WaveProgress(tuple(jobs), fraction))

        held = keeper.held(jobs)
        try:
            self._runner.run(held, heard)
            for job in held:
                keeper.finish(job)
        except Exception as error:  # noqa: BLE001 - a job may fail with anything, and that is told to its owner
            return error
        self._pause_s = 0.0
        return None

    def _leave(self, keeper: LeaseKeeper, error: Exception) -> None:
        """What may pass is no fault of the jobs: they go back uncounted, and are tried again later."""
        _LOG.warning("jobs could not be read now", error=str(error))
        keeper.release_all(_told_of(error))
        self._back_off()

    def _back_off(self) -> None:
        self._pause_s = min(_MOST_PAUSE_S, max(_LEAST_PAUSE_S, 2 * self._pause_s))
        self._paused_until = self._clock.monotonic() + self._pause_s

    def _is_something_open(self) -> bool:
        jobs = [jobs for jobs in map(self._board.jobs, self._shards) if not _has_stopped(jobs)]
        return any(is_open(job) for of_shard in jobs for job in of_shard)


def _may_pass(error: Exception) -> bool:
    """Whether what went wrong lies outside of the jobs: the store is out of reach, say. What a run itself gives up is
    counted: it has tried for long, and whether it was the job can't be told from it.
    """
    return isinstance(error, Retryable) and not isinstance(error, ReplayFailed)


def _has_stopped(jobs: Sequence[Job]) -> bool:
    return any(job.state is JobState.FAILED for job in jobs)


def _told_of(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
