"""Pausing or cancelling a job, and waiting until nothing of it can land."""

from strandline.clock import Clock, wait_until
from strandline.jobs.board import BulkBoard
from strandline.jobs.transitions import is_announced
from strandline.node.bulk.changing import ask_to_stop
from strandline.node.bulk.opening import worker
from strandline.node.bulk.reports import JobStatus
from strandline.node.settings.sections import Settings
from strandline.store.bulk_jobs import Wanted

_HOLDS_S = 30.0


def stop_job(settings: Settings, board: BulkBoard, name: str, wanted: Wanted, clock: Clock) -> JobStatus:
    """Have a job paused or cancelled. It is so once its workers have given up their parts: this waits a while for it,
    and does what is left to do if there are none. The event of a job that is cancelled is written here, too; one that
    can't be delivered now is left to the next worker.
    """
    settling = worker(settings, board, clock)
    if ask_to_stop(board, name, wanted, clock).wanted:

        def holds() -> bool:
            settling.step(name)
            return not board.job(name).wanted

        wait_until(holds, timeout=_HOLDS_S, clock=clock, poll=0.5)
    elif not is_announced(board.job(name)):
        settling.step(name)
    job = board.job(name)
    return JobStatus.of(job, board.parts(job))
