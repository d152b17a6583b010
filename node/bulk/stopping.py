"""Pausing or cancelling a job, and waiting until nothing of it can land."""

from strandline.clock import Clock, wait_until
from strandline.jobs.board import BulkBoard
from strandline.jobs.transitions import is_announced
from strandline.node.bulk.changing import request_stop
from strandline.node.bulk.opening import worker
from strandline.node.bulk.reports import JobStatus
from strandline.node.settings.sections import Settings
from strandline.store.bulk_jobs import Wanted

_TIMEOUT_S = 30.0


def stop_job(settings: Settings, board: BulkBoard, name: str, wanted: Wanted, clock: Clock) -> JobStatus:
    """Have a job paused or cancelled. It is so once its workers have given up their parts: this waits a while for it,
    and does what is left to do if there are none. The event of a job that is cancelled is written here, too; one that
    can't be delivered now is left to the next worker.
    """
    stopper = worker(settings, board, clock)
    if request_stop(board, name, wanted, clock).wanted:

        def is_stopped() -> bool:
            stopper.step(name)
            return not board.job(name).wanted

        wait_until(is_stopped, timeout=_TIMEOUT_S, clock=clock, poll=0.5)
    elif not is_announced(board.job(name)):
        stopper.step(name)
    job = board.job(name)
    return JobStatus.of(job, board.parts(job))
