"""A worker: leases parts of jobs, has them run, in its own process or on Spark, and marks what came of them.

One thread does all of that. It is the only one that touches the tables of jobs and parts, beside the one that renews
leases: code that runs parts elsewhere never does.
"""

from collections.abc import Callable
from functools import partial

import structlog

from strandline.clock import Clock
from strandline.errors import Retryable
from strandline.jobs.board import BulkBoard
from strandline.jobs.counts import AttemptCounts
from strandline.jobs.job_lifecycle import JobLifecycle, WorkerRules, require_running, start_attempt
from strandline.jobs.ordering import parts_to_take
from strandline.jobs.rate import NO_THROTTLE, JobRates, Throttle
from strandline.jobs.running import InProcessRunner, JobKind, LeasedPart, PartEnd, PartRunner, PartStopped, RunningPart
from strandline.jobs.transitions import ENDED, has_work, is_announced, takes_parts
from strandline.jobs.worker_leases import WorkerLeases
from strandline.recovery.leasing import is_same_lease
from strandline.recovery.setbacks import Pause
from strandline.store.bulk_jobs import BulkJob, BulkPart

__all__ = ["BulkWorker", "JobKind", "PartStopped", "RunningPart", "WorkerRules"]

_LOG = structlog.get_logger(__name__)
_POLL_S = 0.5


class BulkWorker:
    """One worker. Its runner says where parts run, and how many at a time."""

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
        """`name` is that of this process, by which others tell whether it lives. Without a runner parts are run in this
        process. `throttle` holds back the samples of all parts together. `rate` bounds the samples a second that this
        worker lands of a job, beside the job's own rate. `stop` says whether the worker is to give up what it does;
        `on_progress` hears of each chunk, perhaps in another thread.
        """
        self._board, self._kinds, self._clock, self._name = board, kinds, clock, name
        self._rules = rules or WorkerRules()
        self._lifecycle = JobLifecycle(board, kinds, clock, self._rules)
        self._runner = runner or InProcessRunner(kinds, clock)
        self._throttle, self._stop, self._on_progress = throttle, stop, on_progress
        self._rates = JobRates(name, clock, rate)
        self._backoffs: dict[str, Pause] = {}
        self._leases = WorkerLeases(board)
        self._polled_at = clock.monotonic()
        self._stopped: dict[str, str] = {}
        """Why the parts of a job are to be given up, by job."""
        self._candidates: dict[str, tuple[BulkJob, list[BulkPart]]] = {}
        """Jobs that take parts, with those that could be taken when the job was last looked at."""

    def run_until_done(self, only: str = "") -> None:
        """Work until no job, or not this one, has anything left to do, or until told to stop. A job that is paused,
        broken or not due has nothing to do now.
        """
        while len(self._leases) or not self._stop():
            try:
                if self.step(only):
                    continue
                jobs = [job for job in self._board.jobs() if only in ("", job.job) and job.kind in self._kinds]
                if not any(has_work(job, self._clock.now_ms()) or not is_announced(job) for job in jobs):
                    return
            except Retryable as error:
                _LOG.warning("the jobs can't be read", error=str(error))
            self._clock.sleep(_POLL_S)

    def step(self, only: str = "") -> bool:
        """See to all jobs, or only to one, lease parts as far as the runner has room, and mark those that have ended;
        False if there is none to run.
        """
        try:
            try:
                self._fill(only)
            except Retryable as error:
                if not len(self._leases):
                    raise
                # Parts go on for as long as their leases last.
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
        """Lease parts until the runner has as many as it wants."""
        room = self._runner.width() - len(self._leases)
        if room <= 0 or self._stop():
            return
        if len(self._leases) and not self._is_poll_due():
            # Jobs may have thousands of parts: they are not read again for each one that has ended.
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
            self._candidates[job.job] = advanced, parts_to_take(advanced, parts)
        else:
            self._stopped[job.job] = f"{advanced.name} is {advanced.wanted or advanced.state}"
            self._candidates.pop(job.job, None)
        return advanced

    def _lease_some(self, job: BulkJob, room: int) -> int:
        """Lease up to so many of a job's parts that were pending, and have them run; how many there were."""
        _, candidates = self._candidates.get(job.job, (job, []))
        leased = 0
        while candidates and leased < room and not self._is_paused(job):
            part = candidates.pop(0)
            leased_at = self._clock.monotonic()
            held = self._board.lease(part, self._name, lambda one: start_attempt(one, job.window))
            if held is not None:
                leased += 1
                self._leases.take(held, leased_at)
                self._runner.start(self._leased(job, held))
        return leased

    def _is_paused(self, job: BulkJob) -> bool:
        pause = self._backoffs.get(job.job)
        return pause is not None and not pause.is_over

    def _leased(self, job: BulkJob, part: BulkPart) -> LeasedPart:
        def report(counts: AttemptCounts) -> None:
            if counts.fresh.sent:
                # What failed before has passed: the next failure is waited for from the shortest pause on.
                self._backoffs.pop(job.job, None)
            self._leases.update_counts(part, counts)
            self._on_progress(part, counts)

        def check() -> None:
            if self._stop():
                raise PartStopped(f"{self._name} is to stop")
            if not self._leases.holds(part):
                raise PartStopped(f"{part.name} is no longer leased to {self._name}")
            if job.job in self._stopped:
                raise PartStopped(self._stopped[job.job])

        def confirm() -> None:
            found = self._board.current(part)
            if found is None or not is_same_lease(found, part):
                raise PartStopped(f"{part.name} is no longer leased to {self._name}")
            # Behind the lease: who has the job paused or cancelled looks for leases after that is wanted.
            require_running(self._board.job(job.job))

        def wait_s(samples: int) -> float:
            # The rate comes last: what it lets through counts there, though another limit holds it back.
            return self._throttle.wait_s(samples) or self._rates.wait_s(job.job, samples)

        begun = job.created_at if part.epoch > 1 else None
        remaining = partial(self._leases.remaining_s, part)
        return LeasedPart(job, part, begun, remaining, report, check, confirm, wait_s)

    def _is_poll_due(self) -> bool:
        return self._clock.monotonic() - self._polled_at >= self._rules.poll_s

    def _poll(self) -> None:
        """See now and then whether the jobs whose parts are running are to go on."""
        if not self._is_poll_due():
            return
        self._polled_at = self._clock.monotonic()
        for name in self._leases.jobs():
            try:
                self._advance(self._board.job(name))
            except Retryable as error:
                # Parts go on for as long as their leases last.
                _LOG.warning("a job can't be looked at", job=name, error=str(error))

    def _finish(self, end: PartEnd) -> None:
        """Mark what came of a part."""
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
                _LOG.info("a part was given up", part=part.name, why=error.message)
                self._leases.release(part)
            case Retryable():
                # No fault of the part: it is tried again later.
                _LOG.warning("a part can't be done now", part=part.name, error=str(error))
                self._leases.release(part, str(error))
                self._backoffs.setdefault(part.job, Pause(self._clock)).begin()
            case _:
                _LOG.warning("a part has failed", part=part.name, error=str(error))
                self._leases.fail(part, str(error))
