"""Replay jobs, bulk jobs and parts, as rows of their tables."""

import json
from collections.abc import Sequence
from typing import Any, Final

from strandline.store.bulk_columns import (
    JOB_COLUMNS,
    PART_COLUMNS,
    job_from,
    job_values,
    part_from,
    part_values,
)
from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.store.jobs import Job, JobState
from strandline.store.rows import ShardId
from strandline.store.sqlite.compared_rows import ComparedTable


def _values(job: Job) -> tuple[object, ...]:
    return (
        job.plan,
        job.start,
        job.end,
        json.dumps(sorted(job.groups)),
        job.wants_keys,
        job.life,
        job.state.value,
        job.epoch,
        job.worker,
        job.leased_until,
        job.failures,
        job.reason,
        job.renewals,
        job.settings,
    )


def _job(place: Sequence[Any], values: Sequence[Any]) -> Job:
    dataset, shard, bucket = place
    plan, start, end, groups, wants_keys, life, state, *others = values
    return Job(
        ShardId(dataset, shard),
        bucket,
        plan,
        start,
        end,
        frozenset(json.loads(groups)),
        bool(wants_keys),
        life,
        JobState(state),
        *others,
    )


REPLAY_JOBS: Final[ComparedTable[Job]] = ComparedTable(
    "jobs",
    ("dataset", "shard", "bucket"),
    (
        "plan",
        "start_offset",
        "end_offset",
        "groups",
        "wants_keys",
        "life",
        "state",
        "epoch",
        "worker",
        "leased_until",
        "failures",
        "reason",
        "renewals",
        "settings",
    ),
    _values,
    _job,
)
BULK_JOBS: Final[ComparedTable[BulkJob]] = ComparedTable(
    "bulk_jobs", ("dataset", "job"), JOB_COLUMNS, job_values, job_from
)
BULK_PARTS: Final[ComparedTable[BulkPart]] = ComparedTable(
    "bulk_parts", ("dataset", "job", "part"), PART_COLUMNS, part_values, part_from
)
