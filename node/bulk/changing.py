"""What operators do to jobs: ask for a pause or a cancellation, resume, delete. Only the store is needed, so that the
HTTP front can do it; see `stopping` for what waits until a job has stopped.
"""

from strandline.clock import Clock
from strandline.errors import ExitCode, Fatal
from strandline.jobs.board import BulkBoard
from strandline.jobs.transitions import ENDED, complete_stop, reopened, request_stop, resume
from strandline.node.bulk.reports import JobStatus
from strandline.store.bulk_jobs import BulkJob, BulkJobState, Wanted

# A worker begins a job before it takes a part of it, and a pause holds only once all parts were fenced.
_WITHOUT_LEASES = frozenset({BulkJobState.PLANNED, BulkJobState.PAUSED})


class NotEnded(Fatal):
    """A job is still to be done, or may be."""

    exit_code = ExitCode.USAGE


def ask_to_stop(board: BulkBoard, name: str, wanted: Wanted, clock: Clock) -> JobStatus:
    """Note that a job is to be paused or cancelled: workers take no more of its parts. A job whose parts no worker may
    have, since it was never begun or is paused, is stopped at once; of any other `wanted` stays set until a worker has
    fenced its parts.
    """

    def stopped(job: BulkJob) -> BulkJob:
        wished = request_stop(job, wanted, clock.now_ms())
        return complete_stop(wished, (), clock.now_ms()) if wished.state in _WITHOUT_LEASES else wished

    job = board.change(board.job(name), stopped)
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
