"""Replay jobs, as statements within a transaction of the caller's: each looks and writes in one."""

import json
import sqlite3
from typing import Any

from strandline.store.jobs import Job, JobState
from strandline.store.rows import ShardId

_SELECT = (
    "SELECT bucket, plan, start_offset, end_offset, groups, wants_keys, life, state, epoch, worker, leased_until,"
    " failures, reason, renewals, settings FROM jobs WHERE dataset = ? AND shard = ?"
)
_WRITE = (
    "INSERT OR REPLACE INTO jobs (dataset, shard, bucket, plan, start_offset, end_offset, groups, wants_keys, expires,"
    " life, state, epoch, worker, leased_until, failures, reason, renewals, settings)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def add_job(connection: sqlite3.Connection, job: Job, *, now: int) -> bool:
    """Put a job in place, unless there is one for the bucket; whether it is there now as given."""
    there = _job(connection, job.shard, job.bucket)
    if there is not None:
        return there == job
    connection.execute(_WRITE, _values(job, now))
    return True


def read_jobs(connection: sqlite3.Connection, shard: ShardId) -> list[Job]:
    """A shard's jobs in order of their buckets."""
    rows = connection.execute(_SELECT + " ORDER BY bucket", (shard.dataset, shard.shard))
    return [_row(shard, *row) for row in rows]


def replace_job(connection: sqlite3.Connection, before: Job, after: Job, *, now: int) -> bool:
    """Put `after` in the place of `before`, if that is still as it was where it counts."""
    if (before.shard, before.bucket) != (after.shard, after.bucket):
        raise ValueError(
            f"the job of {before.shard} bucket {before.bucket} was to be replaced by one of {after.shard} bucket"
            f" {after.bucket}"
        )
    if not _is_as(connection, before):
        return False
    connection.execute(_WRITE, _values(after, now))
    return True


def remove_job(connection: sqlite3.Connection, job: Job) -> bool:
    """Take a job away, if it is still as it was where it counts."""
    if not _is_as(connection, job):
        return False
    connection.execute(
        "DELETE FROM jobs WHERE dataset = ? AND shard = ? AND bucket = ?",
        (job.shard.dataset, job.shard.shard, job.bucket),
    )
    return True


def _is_as(connection: sqlite3.Connection, job: Job) -> bool:
    there = _job(connection, job.shard, job.bucket)
    return there is not None and _compared(there) == _compared(job)


def _compared(job: Job) -> tuple[str, JobState, int, str, int, int]:
    return job.plan, job.state, job.epoch, job.worker, job.leased_until, job.renewals


def _job(connection: sqlite3.Connection, shard: ShardId, bucket: int) -> Job | None:
    row = connection.execute(_SELECT + " AND bucket = ?", (shard.dataset, shard.shard, bucket)).fetchone()
    return None if row is None else _row(shard, *row)


def _values(job: Job, now: int) -> tuple[object, ...]:
    return (
        job.shard.dataset,
        job.shard.shard,
        job.bucket,
        job.plan,
        job.start,
        job.end,
        json.dumps(sorted(job.groups)),
        job.wants_keys,
        now + job.life,
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


def _row(shard: ShardId, *values: Any) -> Job:
    bucket, plan, start, end, groups, wants_keys, life, state, *others = values
    return Job(
        shard,
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
