"""What operators do to jobs: pause, resume, cancel, delete."""

from strandline.clock import Clock, wait_until
from strandline.errors import ExitCode, Fatal
from strandline.jobs.board import BulkBoard
from strandline.jobs.transitions import ENDED, reopened, resume, want
from strandline.node.bulk.opening import worker
from strandline.node.bulk.reports import JobStatus
from strandline.node.settings.sections import Settings
from strandline.store.bulk_jobs import Wanted

_HOLDS_S = 30.0


class NotEnded(Fatal):
    """A job is still to be done, or may be."""

    exit_code = ExitCode.USAGE


def stop_job(settings: Settings, board: BulkBoard, name: str, wanted: Wanted, clock: Clock) -> JobStatus:
    """Have a job paused or cancelled. It is so once its workers have given up their parts: this waits a while for it,
    and does what is left to do if there are none.
    """
    job = board.change(board.job(name), lambda one: want(one, wanted, clock.now_ms()))
    settling = worker(settings, board, clock)

    def holds() -> bool:
        settling.step(name)
        return not board.job(name).wanted

    if job.wanted:
        wait_until(holds, timeout=_HOLDS_S, clock=clock, poll=0.5)
    job = board.job(name)
    return JobStatus.of(job, board.parts(job))


def resume_job(board: BulkBoard, name: str, clock: Clock) -> JobStatus:
    """Let workers go on with a job. Parts that have failed are tried again."""
    job = board.job(name)
    # Before the job: a worker that sees it run must not find them failed.
    resume(job, clock.now_ms())
    for part in board.parts(job):
        again = reopened(part)
        if again != part:
            board.replace(part, again)
    job = board.change(job, lambda one: resume(one, clock.now_ms()))
    return JobStatus.of(job, board.parts(job))


def delete_job(board: BulkBoard, name: str) -> None:
    """Remove an ended job and its parts. Raises `NotEnded`."""
    job = board.job(name)
    if job.state not in ENDED:
        raise NotEnded(f"{job.name} is {job.state}", remedy=f"Cancel it first: `strandline job cancel {name}`")
    board.store.remove_bulk_parts(board.parts(job))
    board.store.remove_bulk_job(job)
