"""A worker: takes parts of a dataset's jobs, has them run, and sees to what happens to jobs between parts.

What a worker does for a job, any other may do as well, and again: every step is a compare-and-set.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import structlog

from strandline.clock import Clock
from strandline.errors import Retryable, StrandlineError
from strandline.jobs.board import BulkBoard
from strandline.jobs.breaker import BreakerRules
from strandline.jobs.counts import AttemptCounts, Counts
from strandline.jobs.outcome import PartOutcome
from strandline.jobs.transitions import ENDED, begin, conclude, expire, guard, is_going, settle, takes_parts
from strandline.recovery.lease_keeper import LeaseKeeper
from strandline.recovery.setbacks import Pause
from strandline.store.bulk_jobs import BulkJob, BulkJobState, BulkPart
from strandline.store.jobs import JobState

_LOG = structlog.get_logger(__name__)
_POLL_S = 0.5


class PartStopped(Retryable):
    """A part was given up: its job is to stop, or its lease is lost. What has landed of it stays."""


@dataclass(frozen=True, slots=True)
class RunningPart:
    """A part that is being run, for the code that runs it.

    `deadline` says until when, on the monotonic clock, nobody else can have the part: Kafka may be used until then.
    `report` is to be called after each chunk, and `check` while it waits for something: both raise `PartStopped` if the
    part is to be given up. `first_begun_ms` is when it may have been begun for the first time; None if it never was.
    """

    job: BulkJob
    part: BulkPart
    deadline: Callable[[], float]
    report: Callable[[AttemptCounts], None]
    check: Callable[[], None]
    first_begun_ms: int | None


class JobKind(Protocol):
    """What a kind of job does with its parts. Each call may be repeated after a crash."""

    def run(self, running: RunningPart) -> PartOutcome:
        """Do a part to its end. Raises `Retryable` for what is no fault of the part."""
        ...

    def fence(self, job: BulkJob, part: BulkPart) -> Counts | None:
        """See to it that nothing lands of a part that another worker may still have; what has landed of it, if that is
        known.
        """
        ...

    def complete(self, job: BulkJob, parts: Sequence[BulkPart]) -> BulkJob:
        """Write what belongs to the end of a job: the job as it is then, which is done."""
        ...


@dataclass(frozen=True, slots=True)
class WorkerRules:
    """When a job breaks, and how often a worker that runs a part looks whether its job is to stop."""

    breaker: BreakerRules = field(default_factory=BreakerRules)
    look_s: float = 2.0


class BulkWorker:
    """One worker, which runs parts one after the other in its own process."""

    def __init__(
        self,
        board: BulkBoard,
        kinds: dict[str, JobKind],
        clock: Clock,
        name: str,
        rules: WorkerRules | None = None,
        *,
        stop: Callable[[], bool] = lambda: False,
        on_progress: Callable[[BulkPart, AttemptCounts], None] = lambda _part, _counts: None,
    ) -> None:
        """`name` is that of this process, by which others tell whether it lives. `stop` says whether the worker is to
        give up what it does; `on_progress` hears of each chunk.
        """
        self._board, self._kinds, self._clock, self._name = board, kinds, clock, name
        self._rules = rules or WorkerRules()
        self._stop, self._on_progress = stop, on_progress
        self._pauses: dict[str, Pause] = {}

    def run_until_done(self, only: str = "") -> None:
        """Work until no job, or not this one, has anything left to do, or until told to stop. A job that is paused,
        broken or not due has nothing to do now.
        """
        while not self._stop():
            try:
                if self.step(only):
                    continue
                jobs = [job for job in self._board.jobs() if only in ("", job.job) and job.kind in self._kinds]
                if not any(is_going(job, self._clock.now_ms()) for job in jobs):
                    return
            except Retryable as error:
                _LOG.warning("the jobs can't be read", error=str(error))
            self._clock.sleep(_POLL_S)

    def step(self, only: str = "") -> bool:
        """See to all jobs, or only to one, and run one part; False if there was none to run."""
        for job in self._board.jobs():
            if job.state in ENDED or job.kind not in self._kinds or only not in ("", job.job):
                continue
            attended, parts = self._attend(job)
            if takes_parts(attended) and self._run_one(attended, parts):
                return True
        return False

    def _attend(self, job: BulkJob) -> tuple[BulkJob, Sequence[BulkPart]]:
        """What has to be done about a job before a part of it is taken; the job and its parts as they are then."""
        board, now = self._board, self._clock.now_ms
        parts = board.take_back_lost(job)
        job = board.change(job, lambda one: begin(one, now()))
        if job.wanted:
            if not any(part.state is JobState.LEASED for part in parts):
                parts = self._fenced(job, parts)
            job = board.change(job, lambda one: settle(one, parts, now()))
        job = board.change(job, lambda one: guard(one, window_counts(one, parts), self._rules.breaker, now()))
        job = board.change(job, lambda one: expire(one, now()))
        job = board.change(job, lambda one: conclude(one, parts, now()))
        if job.state is BulkJobState.COMPLETING:
            job = self._completed(job, parts)
        return job, parts

    def _completed(self, job: BulkJob, parts: Sequence[BulkPart]) -> BulkJob:
        def completed(one: BulkJob) -> BulkJob:
            return self._kinds[one.kind].complete(one, parts) if one.state is BulkJobState.COMPLETING else one

        return self._board.change(job, completed)

    def _fenced(self, job: BulkJob, parts: Sequence[BulkPart]) -> list[BulkPart]:
        """The parts of a job that is to stop. Of those that were begun and are not done nothing lands from now on: a
        worker that lost one may not know of it yet. Each has its count of what has landed then.
        """
        found: list[BulkPart] = []
        for part in parts:
            if part.state is not JobState.DONE and part.epoch > 0:
                landed, counts = self._kinds[job.kind].fence(job, part), AttemptCounts.from_json(part.counts)
                counts = counts if landed is None else replace(counts, total=landed)
                fenced = replace(part, counts=counts.to_json(), renewals=part.renewals + 1)
                # If it was changed meanwhile, another worker sees to it.
                self._board.replace(part, fenced)
                found.append(fenced)
            else:
                found.append(part)
        return found

    def _run_one(self, job: BulkJob, parts: Sequence[BulkPart]) -> bool:
        pause = self._pauses.get(job.job)
        if pause is not None and not pause.is_over:
            return False
        for part in parts:
            leased_at = self._clock.monotonic()
            leased = self._board.lease(part, self._name, lambda one: replace(one, window=job.window, counts=""))
            if leased is not None:
                self._run(job, leased, leased_at)
                return True
        return False

    def _run(self, job: BulkJob, part: BulkPart, leased_at: float) -> None:
        watch = _Watch(self._board, job, part, self._clock, self._rules)
        keeper = LeaseKeeper(
            self._board, [part], leased_at=leased_at, amend=lambda one: replace(one, counts=watch.counts.to_json())
        )

        def report(counts: AttemptCounts) -> None:
            keeper.note_progress()
            watch.counts = counts
            self._on_progress(part, counts)
            check()

        def check() -> None:
            if self._stop():
                raise PartStopped(f"{self._name} is to stop")
            if not keeper.held([part]):
                raise PartStopped(f"{part.name} is no longer leased to {self._name}")
            watch.look()

        def deadline() -> float:
            return self._clock.monotonic() + keeper.remaining_s(part)

        running = RunningPart(job, part, deadline, report, check, job.created_at if part.epoch > 1 else None)
        try:
            with keeper.keeping():
                outcome = self._kinds[job.kind].run(running)
            counted = replace(watch.counts, total=outcome.counts)
            keeper.finish(part, lambda one: replace(one, counts=counted.to_json(), outcome=outcome.to_json()))
            self._pauses.pop(job.job, None)
        except PartStopped as stopped:
            _LOG.info("a part was given up", part=part.name, why=stopped.message)
        except Retryable as error:
            # No fault of the part: it is tried again later.
            _LOG.warning("a part can't be done now", part=part.name, error=str(error))
            keeper.release_all(str(error))
            self._pauses.setdefault(job.job, Pause(self._clock)).begin()
        except StrandlineError as error:
            _LOG.warning("a part has failed", part=part.name, error=str(error))
            keeper.fail(part, str(error))
        finally:
            keeper.release_all()


class _Watch:
    """What an attempt at a part has counted, and a look now and then whether its job is to go on."""

    def __init__(self, board: BulkBoard, job: BulkJob, part: BulkPart, clock: Clock, rules: WorkerRules) -> None:
        self._board, self._job, self._part, self._clock, self._rules = board, job, part, clock, rules
        self._looked = clock.monotonic()
        self.counts = AttemptCounts()

    def look(self) -> None:
        """Raises `PartStopped` if the part is to be given up."""
        now = self._clock.monotonic()
        if now - self._looked < self._rules.look_s:
            return
        self._looked = now
        others = [part for part in self._board.parts(self._job) if part.part != self._part.part]

        def guarded(job: BulkJob) -> BulkJob:
            window = window_counts(job, others) + self.counts.fresh
            return guard(job, window, self._rules.breaker, self._clock.now_ms())

        job = self._board.change(self._board.job(self._job.job), guarded)
        if not takes_parts(job):
            raise PartStopped(f"{job.name} is {job.wanted or job.state}")


def window_counts(job: BulkJob, parts: Iterable[BulkPart]) -> Counts:
    """What was counted since a job was started or resumed: by parts that are done, and by those that are being run."""
    return Counts.total(AttemptCounts.from_json(part.counts).fresh for part in parts if part.window == job.window)
