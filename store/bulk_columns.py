"""Maps bulk jobs and parts to columns, under the same names in every store."""

from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final

from strandline.store.bulk_jobs import BulkJob, BulkJobState, BulkPart, Wanted
from strandline.store.jobs import JobState

JOB_COLUMNS: Final = tuple(field.name for field in fields(BulkJob) if field.name not in ("dataset", "job"))
"""The columns of a job, without its key."""
PART_COLUMNS: Final = tuple(field.name for field in fields(BulkPart) if field.name not in ("dataset", "job", "part"))
"""The columns of a part, without its key."""

_job_values = attrgetter(*JOB_COLUMNS)
_part_values = attrgetter(*PART_COLUMNS)


def job_values(job: BulkJob) -> tuple[object, ...]:
    """Return the values of a job's columns."""
    return _without_enums(_job_values(job))


def job_from(key: Sequence[Any], values: Sequence[Any]) -> BulkJob:
    """Make a job from its key and the values of its columns."""
    columns = dict(zip(JOB_COLUMNS, values, strict=True))
    columns |= {"state": BulkJobState(columns["state"]), "wanted": Wanted(columns["wanted"])}
    return BulkJob(*key, **columns)


def part_values(part: BulkPart) -> tuple[object, ...]:
    """Return the values of a part's columns."""
    return _without_enums(_part_values(part))


def part_from(key: Sequence[Any], values: Sequence[Any]) -> BulkPart:
    """Make a part from its key and the values of its columns."""
    columns = dict(zip(PART_COLUMNS, values, strict=True))
    columns["state"] = JobState(columns["state"])
    return BulkPart(*key, **columns)


def _without_enums(values: tuple[Any, ...]) -> tuple[object, ...]:
    """Replace enumeration members by plain strings, so that the driver does not have to look up their type."""
    return tuple(str(value) if isinstance(value, str) else value for value in values)
