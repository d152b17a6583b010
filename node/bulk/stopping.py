"""Pauses or cancels a job, and waits until nothing more of it can land."""

from strandline.clock import Clock, wait_until
from strandline.jobs.board import BulkBoard
from strandline.jobs.transitions import is_announced
from strandline.node.bulk.changing import request_job_stop
from strandline.node.bulk.opening import worker
from strandline.node.bulk.reports import JobStatus
from strandline.node.settings.sections import Settings
from strandline.store.bulk_jobs import Wanted

_TIMEOUT_S = 30.0


def stop_job(settings: Settings, board: BulkBoard, name: str, wanted: Wanted, clock: Clock) -> JobStatus:
    """Pause or cancel a job. This takes effect once its workers have released their parts. Waits up to 30 s for it, and
    fences the parts itself if there are no workers. Also writes the event of a cancelled job; if it can't be delivered
    now, the next worker retries it.
    """
    stopper = worker(settings, board, clock)
    if request_job_stop(board, name, wanted, clock).wanted:

        def is_stopped() -> bool:
            stopper.step(name)
            return not board.job(name).wanted

        wait_until(is_stopped, timeout=_TIMEOUT_S, clock=clock, poll=0.5)
    elif not is_announced(board.job(name)):
        stopper.step(name)
    job = board.job(name)
    return JobStatus.of(job, board.parts(job))
