"""A worker in the foreground of a command: it shows how far a job is, and gives up its part on Ctrl-C or SIGTERM."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from strandline.clock import Clock
from strandline.jobs.board import BulkBoard
from strandline.jobs.counts import AttemptCounts, Counts
from strandline.jobs.transitions import is_going, next_due
from strandline.node.bulk.opening import worker
from strandline.node.bulk.pace import Pace
from strandline.node.bulk.reports import JobStatus
from strandline.node.settings.sections import Settings
from strandline.node.steps import Step
from strandline.store.bulk_jobs import BulkJob, BulkJobState, BulkPart

_LOOK_S = 5.0


class Progress:
    """How far a job is, as its worker hears of it."""

    def __init__(self, status: JobStatus, step: Step, clock: Clock) -> None:
        self._status, self._step, self._clock = status, step, clock
        self._began = clock.monotonic()
        self._latest: dict[int, Counts] = {}
        self._parts = status.parts_done
        self._pace = Pace()

    def heard(self, part: BulkPart, counts: AttemptCounts) -> None:
        """A chunk of a part has landed."""
        self._latest[part.part] = counts.fresh
        fresh = Counts.total(self._latest.values())
        seconds = max(self._clock.monotonic() - self._began, 1e-3)
        done = self._parts + len(self._latest) - 1
        self._step.fraction = min(1.0, done / max(1, self._status.parts))
        self._pace.see(seconds, self._step.fraction, fresh)
        self._step.note = self._pace.note(done, self._status.parts)


@contextmanager
def interrupts() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set, instead of ending the process."""
    stopping = threading.Event()
    before = {number: signal.signal(number, lambda *_: stopping.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def work_on(
    settings: Settings,
    board: BulkBoard,
    job: BulkJob,
    step: Step,
    clock: Clock,
    *,
    rate: float | None,
    stop: threading.Event,
) -> JobStatus:
    """Work on a job until nothing of it can be done now; how it stands then."""
    progress = Progress(JobStatus.of(job, board.parts(job)), step, clock)
    made = worker(settings, board, clock, rate=rate, stop=stop.is_set, on_progress=progress.heard)
    made.run_until_done(job.job)
    job = board.job(job.job)
    return JobStatus.of(job, board.parts(job))


def wait_for_due(board: BulkBoard, only: str, clock: Clock, stop: threading.Event) -> bool:
    """Wait until a job, or this one, is due; False if none is planned for later, or if it is to stop."""
    while not stop.is_set():
        jobs = [job for job in board.jobs() if only in ("", job.job)]
        now = clock.now_ms()
        if any(job.state is BulkJobState.PLANNED and is_going(job, now) for job in jobs):
            return True
        due = next_due(jobs, now)
        if due is None:
            return False
        # Jobs may be cancelled or planned meanwhile.
        stop.wait(min(_LOOK_S, (due - now) / 1000))
    return False
