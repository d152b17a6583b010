"""A job that is asked for again while it is still to be done: its command goes on with it, rather than plan another one
that would do all of it once more.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from strandline.errors import ExitCode, Fatal
from strandline.jobs.board import BulkBoard
from strandline.jobs.rate import RATE
from strandline.jobs.transitions import ENDED
from strandline.node.bulk.adding import PlannedJob
from strandline.store.bulk_jobs import BulkJob, BulkJobState, Wanted

_IDLE = (BulkJobState.PAUSED, BulkJobState.BROKEN)


class JobIdle(Fatal):
    """The same job is there already, and is paused or broken."""

    exit_code = ExitCode.USAGE


def open_job(board: BulkBoard, planned: PlannedJob) -> BulkJob | None:
    """The newest job that is to be done and is the same as this plan, whenever it was planned; None if there is none.
    Raises `JobIdle` if it is paused or broken.
    """
    spec = _lasting(json.loads(planned.spec), planned)
    sources = planned.sources if planned.compares_sources else None
    return find_open(board, planned.kind, lambda other: _lasting(other, planned) == spec, sources, planned.due_at)


def find_open(
    board: BulkBoard,
    kind: str,
    is_same: Callable[[dict[str, Any]], bool],
    sources: Sequence[str] | None = None,
    due_at: int = 0,
) -> BulkJob | None:
    """The newest job of a kind that is to be done and has such a spec, and these sources if they are given. Raises
    `JobIdle` if it is paused or broken.
    """
    for job in reversed(board.jobs()):
        if job.kind != kind or job.state in ENDED or job.wanted is Wanted.CANCELLED or job.due_at != due_at:
            continue
        if not is_same(json.loads(job.spec)):
            continue
        if sources is not None and [part.source for part in board.parts(job)] != list(sources):
            continue
        if job.state in _IDLE or job.wanted is Wanted.PAUSED:
            raise JobIdle(
                f"job {job.job} does the same, and is {job.wanted or job.state}",
                remedy=f"`strandline job resume {job.job}` and `strandline job work {job.job}` go on with it; --new "
                "plans another one",
            )
        return job
    return None


def _lasting(spec: dict[str, Any], planned: PlannedJob) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if name != RATE and name not in planned.plan_time_fields}
