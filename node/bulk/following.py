"""Shows the progress of a job that other processes work on."""

import threading

from strandline.clock import Clock
from strandline.errors import Retryable
from strandline.jobs.board import BulkBoard
from strandline.jobs.transitions import has_work
from strandline.node.bulk.progress_rate import ProgressRate
from strandline.node.bulk.reports import JobStatus
from strandline.node.steps import Step

_POLL_S = 1.0


def follow(board: BulkBoard, name: str, step: Step, clock: Clock, *, stop: threading.Event) -> JobStatus:
    """Show a job's progress until it has ended, is paused or broken, or until `stop`. Returns its status then. Retries
    while the store does not answer. Raises `NoSuchJob`.
    """
    progress_rate = ProgressRate()
    while True:
        try:
            job = board.job(name)
            status = JobStatus.of(job, board.parts(job))
        except Retryable as error:
            if stop.is_set():
                raise
            step.note = error.message
        else:
            progress_rate.record(clock.monotonic(), status.progress, status.counts)
            step.fraction, step.note = status.progress, progress_rate.note(status.parts_done, status.parts)
            if stop.is_set() or not has_work(job, clock.now_ms()):
                return status
        clock.sleep(_POLL_S)
