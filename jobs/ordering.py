"""Ordered jobs: their parts run in the order of the plan, one at a time over all workers. Of samples with equal times,
the one of the later part wins, because it comes later in the topic.

A part is leased only once all parts before it are done. `done` is final, and a part is done only after it has landed
completely and former holders are fenced. The order therefore needs no coordination between workers.
"""

from collections.abc import Sequence

import orjson

from strandline.recovery.leasing import is_leasable
from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.store.jobs import JobState


def is_ordered(job: BulkJob) -> bool:
    """Whether the parts of the job must run in order."""
    return bool(orjson.loads(job.spec).get("ordered", False))


def leasable_parts(job: BulkJob, parts: Sequence[BulkPart]) -> list[BulkPart]:
    """The parts that a worker may lease now, by number."""
    if not is_ordered(job):
        return [part for part in parts if is_leasable(part)]
    first = _first_open(job, parts)
    return [first] if first is not None and is_leasable(first) else []


def is_blocked(job: BulkJob, parts: Sequence[BulkPart]) -> bool:
    """Whether no further part may be leased, because an earlier one has failed permanently."""
    if not is_ordered(job):
        return False
    first = _first_open(job, parts)
    return first is not None and first.state is JobState.FAILED


def _first_open(job: BulkJob, parts: Sequence[BulkPart]) -> BulkPart | None:
    """The first part that is not done; None if the list is incomplete."""
    if len(parts) != job.parts:
        return None
    return next((part for part in sorted(parts, key=lambda one: one.part) if part.state is not JobState.DONE), None)
