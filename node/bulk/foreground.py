"""Runs a worker in the foreground of a command: shows progress, and releases its part on Ctrl-C or SIGTERM."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from strandline.clock import Clock
from strandline.errors import StrandlineError
from strandline.jobs.board import BulkBoard
from strandline.jobs.counts import AttemptCounts, Counts
from strandline.jobs.running import PartRunner
from strandline.jobs.transitions import has_work, next_due
from strandline.node.bulk.opening import worker
from strandline.node.bulk.placement import Placement
from strandline.node.bulk.progress_rate import ProgressRate
from strandline.node.bulk.reports import JobStatus
from strandline.node.settings.sections import Settings
from strandline.node.steps import Step, Steps
from strandline.store.bulk_jobs import BulkJob, BulkJobState, BulkPart

_POLL_S = 5.0


class Progress:
    """Shows the progress that a worker reports."""

    def __init__(self, status: JobStatus, step: Step, clock: Clock, at_once: int = 1) -> None:
        """Up to `at_once` of the parts that have reported may still be running."""
        self._status, self._step, self._clock = status, step, clock
        self._began = clock.monotonic()
        self._latest: dict[int, Counts] = {}
        self._parts, self._at_once = status.parts_done, at_once
        self._progress_rate = ProgressRate()
        self._lock = threading.Lock()

    def on_chunk(self, part: BulkPart, counts: AttemptCounts) -> None:
        """Called when a chunk of a part has landed. Thread-safe."""
        with self._lock:
            self._latest[part.part] = counts.fresh
            fresh = Counts.total(self._latest.values())
            seconds = max(self._clock.monotonic() - self._began, 1e-3)
            done = self._parts + max(0, len(self._latest) - self._at_once)
            self._step.fraction = min(1.0, done / max(1, self._status.parts))
            self._progress_rate.record(seconds, self._step.fraction, fresh)
            self._step.note = self._progress_rate.note(done, self._status.parts)


@contextmanager
def interrupts() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set instead of ending the process."""
    stopping = threading.Event()
    before = {number: signal.signal(number, lambda *_: stopping.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def runner_for(
    placement: Placement, settings: Settings, steps: Steps, clock: Clock, *, warn: Callable[[str], None] | None = None
) -> Iterator[PartRunner | None]:
    """The runner of parts; None for this process. Use it before `interrupts`: starting a Spark session replaces the
    signal handler of Ctrl-C. If Spark can't be started, `warn` gets the reason and parts run in this process; without
    `warn`, the error is raised.
    """
    if placement is not Placement.SPARK:
        yield None
        return
    # Importing Spark's modules takes a second, and most jobs don't need them.
    from strandline.node.bulk.spark_running import spark_runner  # noqa: PLC0415

    with ExitStack() as opened:
        runner: PartRunner | None = None
        try:
            with steps.step("Starting Spark"):
                runner = opened.enter_context(spark_runner(settings, clock))
        except StrandlineError as error:
            if warn is None:
                raise
            warn(f"Warning: parts run in this process, because Spark can't be started. {error}")
        yield runner


def work_on(
    settings: Settings,
    board: BulkBoard,
    job: BulkJob,
    step: Step,
    clock: Clock,
    *,
    stop: threading.Event,
    rate: float | None = None,
    runner: PartRunner | None = None,
) -> JobStatus:
    """Work on a job until nothing is left to do now, and return its status. Without a runner, its parts run in this
    process. `rate` limits this worker, in addition to the job's own rate.
    """
    at_once = 1 if runner is None else runner.width()
    progress = Progress(JobStatus.of(job, board.parts(job)), step, clock, at_once)
    job_worker = worker(
        settings, board, clock, rate=rate, runner=runner, stop=stop.is_set, on_progress=progress.on_chunk
    )
    job_worker.run_until_done(job.job)
    job = board.job(job.job)
    return JobStatus.of(job, board.parts(job))


def wait_for_due(board: BulkBoard, only: str, clock: Clock, stop: threading.Event) -> bool:
    """Wait until a planned job is due; only the job `only`, unless it is empty. False if no job is planned for later,
    or on `stop`.
    """
    while not stop.is_set():
        jobs = [job for job in board.jobs() if only in ("", job.job)]
        now = clock.now_ms()
        if any(job.state is BulkJobState.PLANNED and has_work(job, now) for job in jobs):
            return True
        due = next_due(jobs, now)
        if due is None:
            return False
        # Polled, because jobs may be cancelled or planned meanwhile.
        stop.wait(min(_POLL_S, (due - now) / 1000))
    return False
