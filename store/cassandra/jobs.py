"""Replay jobs, bulk jobs and parts, as rows of their tables.

Rows of replay jobs that a node of schema version 2 wrote lack some columns.
"""

from collections.abc import Sequence
from typing import Any, Final

from strandline.store.bulk_columns import job_from, job_values, part_from, part_values
from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.store.cassandra import statements
from strandline.store.cassandra.compared_rows import ComparedRows, TableSpec
from strandline.store.cassandra.requests import Requests
from strandline.store.jobs import LIFE_OF_VERSION_2, Job, JobState
from strandline.store.rows import ShardId

_EXPIRES_FOR_VERSION_2: Final = 2_114_380_800_000
"""2037-01-01: nodes of schema version 2 ignore jobs whose date has passed, and derive the TTL from the date, which
Cassandra rejects beyond January 2038.
"""


def replay_jobs(requests: Requests) -> ComparedRows[Job]:
    """The table of replay jobs: one partition per shard."""
    return ComparedRows(requests, TableSpec(statements.JOBS, _values, _job))


def bulk_jobs(requests: Requests) -> ComparedRows[BulkJob]:
    """The table of bulk jobs: one partition per dataset."""
    return ComparedRows(requests, TableSpec(statements.BULK_JOBS, job_values, job_from))


def bulk_parts(requests: Requests) -> ComparedRows[BulkPart]:
    """The table of parts: one partition per job."""
    return ComparedRows(requests, TableSpec(statements.BULK_PARTS, part_values, part_from))


def _values(job: Job) -> tuple[object, ...]:
    return (
        job.plan,
        job.start,
        job.end,
        job.groups,
        job.wants_keys,
        _EXPIRES_FOR_VERSION_2,
        job.life,
        job.state.value,
        job.epoch,
        job.worker,
        job.leased_until,
        job.renewals,
        job.failures,
        job.reason,
        job.settings,
    )


def _job(place: Sequence[Any], values: Sequence[Any]) -> Job:
    dataset, shard, bucket = place
    plan, start, end, groups, wants_keys, _, life, state, epoch, worker, leased_until, *others = values
    renewals, failures, reason, settings = others
    return Job(
        shard=ShardId(dataset, shard),
        bucket=bucket,
        plan=plan,
        start=start,
        end=end,
        groups=frozenset(groups),
        wants_keys=wants_keys,
        life=LIFE_OF_VERSION_2 if life is None else life,
        state=JobState(state),
        epoch=epoch,
        worker=worker,
        leased_until=leased_until,
        failures=failures,
        reason=reason,
        renewals=renewals or 0,
        settings=settings or "",
    )
