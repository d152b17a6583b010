"""Jobs whose parts run in the order of the plan, one at a time over all workers: of samples with equal times the one of
the later part wins then, since it comes later in the topic.

A part is taken only once all before it are done. Done is for good, and a part is done only after everything of it has
landed and its former holders were fenced: so this holds whatever workers know of each other.
"""

from collections.abc import Sequence

import orjson

from strandline.recovery.leasing import is_leasable
from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.store.jobs import JobState


def is_ordered(job: BulkJob) -> bool:
    """Whether its spec wants its parts in order."""
    return bool(orjson.loads(job.spec).get("ordered", False))


def parts_to_take(job: BulkJob, parts: Sequence[BulkPart]) -> list[BulkPart]:
    """The parts that a worker may lease now, by their numbers."""
    if not is_ordered(job):
        return [part for part in parts if is_leasable(part)]
    first = _first_open(job, parts)
    return [first] if first is not None and is_leasable(first) else []


def is_blocked(job: BulkJob, parts: Sequence[BulkPart]) -> bool:
    """Whether no part may be taken any more, since one before them has failed for good."""
    if not is_ordered(job):
        return False
    first = _first_open(job, parts)
    return first is not None and first.state is JobState.FAILED


def _first_open(job: BulkJob, parts: Sequence[BulkPart]) -> BulkPart | None:
    """The first part that is not done. A list that lacks some says nothing."""
    if len(parts) != job.parts:
        return None
    return next((part for part in sorted(parts, key=lambda one: one.part) if part.state is not JobState.DONE), None)
