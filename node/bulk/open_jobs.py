"""Finds an open job that is identical to a new plan, so that a repeated command continues it instead of planning a
second job for the same data.
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
    """An identical job exists and is paused or broken."""

    exit_code = ExitCode.USAGE


def open_job(board: BulkBoard, planned: PlannedJob) -> BulkJob | None:
    """The newest open job that is identical to this plan; None if there is none. Raises `JobIdle` if it is paused or
    broken.
    """
    spec = _comparable(json.loads(planned.spec), planned)
    sources = planned.sources if planned.compares_sources else None
    return find_open(board, planned.kind, lambda other: _comparable(other, planned) == spec, sources, planned.due_at)


def find_open(
    board: BulkBoard,
    kind: str,
    is_same: Callable[[dict[str, Any]], bool],
    sources: Sequence[str] | None = None,
    due_at: int = 0,
) -> BulkJob | None:
    """The newest open job of a kind whose spec `is_same`, with these sources if they are given. Raises `JobIdle` if it
    is paused or broken.
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
                f"the identical job {job.job} is {job.wanted or job.state}",
                remedy=f"Continue it with `strandline job resume {job.job}` and `strandline job work {job.job}`, or "
                "use --new to plan a new one",
            )
        return job
    return None


def _comparable(spec: dict[str, Any], planned: PlannedJob) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if name != RATE and name not in planned.plan_time_fields}
