"""The worker: leases parts of jobs, has them run in its own process or on Spark, and stores their outcomes.

All of this happens in one thread. Only this thread and the one that renews leases use the tables of jobs and parts;
code that runs parts in other processes never does.
"""

from collections.abc import Callable
from functools import partial

import structlog

from strandline.clock import Clock
from strandline.errors import Retryable
from strandline.jobs.board import BulkBoard
from strandline.jobs.counts import AttemptCounts
from strandline.jobs.job_lifecycle import JobLifecycle, WorkerRules, require_running, start_attempt
from strandline.jobs.ordering import leasable_parts
from strandline.jobs.rate import NO_THROTTLE, JobRates, Throttle
from strandline.jobs.running import InProcessRunner, JobKind, LeasedPart, PartEnd, PartRunner, PartStopped, RunningPart
from strandline.jobs.transitions import ENDED, has_work, is_announced, takes_parts
from strandline.jobs.worker_leases import WorkerLeases
from strandline.recovery.failure_tracking import Backoff
from strandline.recovery.leasing import is_same_lease
from strandline.store.bulk_jobs import BulkJob, BulkPart

__all__ = ["BulkWorker", "JobKind", "PartStopped", "RunningPart", "WorkerRules"]

_LOG = structlog.get_logger(__name__)
_POLL_S = 0.5


class BulkWorker:
    """A worker. Its runner decides where parts run, and how many at a time."""

    def __init__(
        self,
        board: BulkBoard,
        kinds: dict[str, JobKind],
        clock: Clock,
        name: str,
        rules: WorkerRules | None = None,
        *,
        runner: PartRunner | None = None,
        throttle: Throttle = NO_THROTTLE,
        rate: float | None = None,
        stop: Callable[[], bool] = lambda: False,
        on_progress: Callable[[BulkPart, AttemptCounts], None] = lambda _part, _counts: None,
    ) -> None:
        """`name` identifies this process, so that others can detect its death. Without a runner, parts run in this
        process. `throttle` limits the samples of all parts together. `rate` limits the samples per second that this
        worker lands for a job, in addition to the job's own rate. `stop` returns whether the worker must stop.
        `on_progress` is called after each chunk, possibly in another thread.
        """
        self._board, self._kinds, self._clock, self._name = board, kinds, clock, name
        self._rules = rules or WorkerRules()
        self._lifecycle = JobLifecycle(board, kinds, clock, self._rules)
        self._runner = runner or InProcessRunner(kinds, clock)
        self._throttle, self._stop, self._on_progress = throttle, stop, on_progress
        self._rates = JobRates(name, clock, rate)
        self._backoffs: dict[str, Backoff] = {}
        self._leases = WorkerLeases(board)
        self._polled_at = clock.monotonic()
        self._stopped: dict[str, str] = {}
        """By job: why its parts must stop."""
        self._candidates: dict[str, tuple[BulkJob, list[BulkPart]]] = {}
        """Running jobs, with the parts that were leasable when the job was last read."""

    def run_until_done(self, only: str = "") -> None:
        """Work until no job, or not this one, has work left, or until `stop`. A paused or broken job, or one that is
        not due, has no work.
        """
        while len(self._leases) or not self._stop():
            try:
                if self.step(only):
                    continue
                jobs = [job for job in self._board.jobs() if only in ("", job.job) and job.kind in self._kinds]
                if not any(has_work(job, self._clock.now_ms()) or not is_announced(job) for job in jobs):
                    return
            except Retryable as error:
                _LOG.warning("jobs can't be read", error=str(error))
            self._clock.sleep(_POLL_S)

    def step(self, only: str = "") -> bool:
        """Advance all jobs, or only one; lease parts while the runner has room; and store the outcomes of parts that
        have ended. False if there is no part to run.
        """
        try:
            try:
                self._fill(only)
            except Retryable as error:
                if not len(self._leases):
                    raise
                # Parts continue as long as their leases last.
                _LOG.warning("no parts can be leased now", error=str(error))
            if not len(self._leases):
                return False
            for end in self._runner.ended(self._poll):
                self._finish(end)
        except BaseException:
            self._runner.close()
            self._leases.release_all()
            raise
        return True

    def _fill(self, only: str) -> None:
        """Lease parts until the runner is full."""
        room = self._runner.width() - len(self._leases)
        if room <= 0 or self._stop():
            return
        if len(self._leases) and not self._is_poll_due():
            # Jobs may have thousands of parts, which are not read again each time that one has ended.
            for job, _ in list(self._candidates.values()):
                room -= self._lease_some(job, room)
            return
        self._polled_at = self._clock.monotonic()
        for job in self._board.jobs():
            if room <= 0:
                return
            has_ended = job.state in ENDED and is_announced(job)
            if has_ended or job.kind not in self._kinds or only not in ("", job.job):
                continue
            room -= self._lease_some(self._advance(job), room)

    def _advance(self, job: BulkJob) -> BulkJob:
        advanced, parts = self._lifecycle.advance(job, self._leases.counts_of)
        self._rates.update(advanced, parts)
        if takes_parts(advanced):
            self._stopped.pop(job.job, None)
            self._candidates[job.job] = advanced, leasable_parts(advanced, parts)
        else:
            self._stopped[job.job] = f"{advanced.name} is {advanced.wanted or advanced.state}"
            self._candidates.pop(job.job, None)
        return advanced

    def _lease_some(self, job: BulkJob, room: int) -> int:
        """Lease up to `room` leasable parts of a job and start them. Returns their number."""
        _, candidates = self._candidates.get(job.job, (job, []))
        leased = 0
        while candidates and leased < room and not self._is_backing_off(job):
            part = candidates.pop(0)
            leased_at = self._clock.monotonic()
            held = self._board.lease(part, self._name, lambda one: start_attempt(one, job.window))
            if held is not None:
                leased += 1
                self._leases.add(held, leased_at)
                self._runner.start(self._part_handle(job, held))
        return leased

    def _is_backing_off(self, job: BulkJob) -> bool:
        pause = self._backoffs.get(job.job)
        return pause is not None and not pause.is_over

    def _part_handle(self, job: BulkJob, part: BulkPart) -> LeasedPart:
        def report(counts: AttemptCounts) -> None:
            if counts.fresh.sent:
                # The cause of earlier failures has passed: the next backoff starts with the shortest pause.
                self._backoffs.pop(job.job, None)
            self._leases.update_counts(part, counts)
            self._on_progress(part, counts)

        def check() -> None:
            if self._stop():
                raise PartStopped(f"{self._name} is stopping")
            if not self._leases.holds(part):
                raise PartStopped(f"{part.name} is no longer leased to {self._name}")
            if job.job in self._stopped:
                raise PartStopped(self._stopped[job.job])

        def confirm() -> None:
            found = self._board.current(part)
            if found is None or not is_same_lease(found, part):
                raise PartStopped(f"{part.name} is no longer leased to {self._name}")
            # Read after the lease: a pause or cancellation looks for leases after it is requested.
            require_running(self._board.job(job.job))

        def wait_s(samples: int) -> float:
            # The rate comes last: its permission is used up even if another throttle delays the samples.
            return self._throttle.wait_s(samples) or self._rates.wait_s(job.job, samples)

        begun = job.created_at if part.epoch > 1 else None
        remaining = partial(self._leases.remaining_s, part)
        return LeasedPart(job, part, begun, remaining, report, check, confirm, wait_s)

    def _is_poll_due(self) -> bool:
        return self._clock.monotonic() - self._polled_at >= self._rules.poll_s

    def _poll(self) -> None:
        """Check periodically whether the jobs of running parts must stop."""
        if not self._is_poll_due():
            return
        self._polled_at = self._clock.monotonic()
        for name in self._leases.jobs():
            try:
                self._advance(self._board.job(name))
            except Retryable as error:
                # Parts continue as long as their leases last.
                _LOG.warning("job can't be read", job=name, error=str(error))

    def _finish(self, end: PartEnd) -> None:
        """Store the outcome of a part."""
        part, error = end.part, end.error
        if end.outcome is not None:
            try:
                self._leases.finish(part, end.outcome)
            except Retryable as failure:
                error = failure
            else:
                self._backoffs.pop(part.job, None)
                return
        match error:
            case PartStopped():
                _LOG.info("part stopped", part=part.name, why=error.message)
                self._leases.release(part)
            case Retryable():
                # Not the fault of the part: it is retried later.
                _LOG.warning("part interrupted, retried later", part=part.name, error=str(error))
                self._leases.release(part, str(error))
                self._backoffs.setdefault(part.job, Backoff(self._clock)).begin()
            case _:
                _LOG.warning("part failed", part=part.name, error=str(error))
                self._leases.fail(part, str(error))
