"""Following a job that others work on, until nothing of it can be done now."""

import threading

from strandline.clock import Clock
from strandline.errors import Retryable
from strandline.jobs.board import BulkBoard
from strandline.jobs.transitions import has_work
from strandline.node.bulk.pace import Pace
from strandline.node.bulk.reports import JobStatus
from strandline.node.steps import Step

_EVERY_S = 1.0


def follow(board: BulkBoard, name: str, step: Step, clock: Clock, *, stop: threading.Event) -> JobStatus:
    """Show how far a job is, again and again, until it has ended, is paused or broken, or until `stop`; how it stands
    then. A store that does not answer for a while is waited for. Raises `NoSuchJob`.
    """
    pace = Pace()
    while True:
        try:
            job = board.job(name)
            status = JobStatus.of(job, board.parts(job))
        except Retryable as error:
            if stop.is_set():
                raise
            step.note = error.message
        else:
            pace.see(clock.monotonic(), status.progress, status.counts)
            step.fraction, step.note = status.progress, pace.note(status.parts_done, status.parts)
            if stop.is_set() or not has_work(job, clock.now_ms()):
                return status
        clock.sleep(_EVERY_S)
