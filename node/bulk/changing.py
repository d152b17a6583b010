"""Operators' changes of jobs: pause, cancel, resume, delete. Only the store is needed, so that the HTTP front can do
them, too. `stopping` also waits until the job has stopped.
"""

from strandline.clock import Clock
from strandline.errors import ExitCode, Fatal
from strandline.jobs.board import BulkBoard
from strandline.jobs.transitions import ENDED, complete_stop, reopened, request_stop, resume
from strandline.node.bulk.reports import JobStatus
from strandline.store.bulk_jobs import BulkJob, BulkJobState, Wanted

# A worker starts a job before it takes a part, and a job becomes PAUSED only once all parts are fenced.
_WITHOUT_LEASES = frozenset({BulkJobState.PLANNED, BulkJobState.PAUSED})


class NotEnded(Fatal):
    """The job has not ended."""

    exit_code = ExitCode.USAGE


def request_job_stop(board: BulkBoard, name: str, wanted: Wanted, clock: Clock) -> JobStatus:
    """Request that a job is paused or cancelled: workers take no more of its parts.

    A planned or paused job has no leased parts and stops at once. For other jobs, `wanted` stays set until a worker has
    fenced the parts.
    """

    def stopped(job: BulkJob) -> BulkJob:
        requested = request_stop(job, wanted, clock.now_ms())
        return complete_stop(requested, (), clock.now_ms()) if requested.state in _WITHOUT_LEASES else requested

    job = board.change(board.job(name), stopped)
    return JobStatus.of(job, board.parts(job))


def resume_job(board: BulkBoard, name: str, clock: Clock) -> JobStatus:
    """Let workers continue a job. Failed parts are retried."""
    job = board.job(name)
    # The parts first: a worker that sees the job running must not find failed parts.
    resume(job, clock.now_ms())
    for part in board.parts(job):
        pending = reopened(part)
        if pending != part:
            board.replace(part, pending)
    job = board.change(job, lambda one: resume(one, clock.now_ms()))
    return JobStatus.of(job, board.parts(job))


def delete_job(board: BulkBoard, name: str) -> None:
    """Remove an ended job and its parts. Raises `NotEnded`."""
    job = board.job(name)
    if job.state not in ENDED:
        raise NotEnded(f"{job.name} is {job.state}", remedy=f"Cancel it first: `strandline job cancel {name}`")
    board.store.remove_bulk_parts(board.parts(job))
    board.store.remove_bulk_job(job)
