"""Replay jobs: one a bucket, each change a compare-and-set.

A change reads the job, compares it with the expected one, and is then made on condition of the stamp that it found. So
rows of schema version 2, which lack some columns, are compared as any other.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from strandline.store.cassandra import statements
from strandline.store.cassandra.expiry import seconds_to_live
from strandline.store.cassandra.failures import Unanswered
from strandline.store.cassandra.requests import Answer, Requests
from strandline.store.jobs import LIFE_OF_VERSION_2, Job, JobState
from strandline.store.rows import ShardId

_EXPIRES_FOR_VERSION_2: Final = 2_114_380_800_000
"""2037-01-01: nodes of schema version 2 leave out a job whose date has passed, and make its time-to-live from the date,
which Cassandra refuses beyond January 2038.
"""


@dataclass(frozen=True, slots=True)
class _Stored:
    """A job, and the stamp of the write that it is from."""

    job: Job
    stamp: uuid.UUID


@dataclass(frozen=True, slots=True)
class Jobs:
    """The table of jobs."""

    requests: Requests

    def read(self, shard: ShardId) -> Sequence[Job]:
        """A shard's jobs, in order of their buckets."""
        rows = self.requests.read(f"read the jobs of shard {shard}", statements.JOBS, (shard.dataset, shard.shard))
        return [stored.job for row in rows if (stored := _stored(shard, row)) is not None]

    def add(self, job: Job) -> bool:
        """Put a job in place, unless there is one; whether it is there now as given."""
        stamp = uuid.uuid4()

        def attempt() -> bool:
            # Also after a try that was not answered: then this finds what it wrote.
            stored = self._read_one(job)
            if stored is not None:
                return stored.job == job
            if not self._put("add", job, stamp, None).applied:
                raise Unanswered(f"another job was put into the place of {_named(job)}", remedy="Try again")
            return True

        return self.requests.retries.run(attempt)

    def replace(self, before: Job, after: Job) -> bool:
        """Put `after` in the place of `before`, if that is still as it was."""
        if (before.shard, before.bucket) != (after.shard, after.bucket):
            raise ValueError(f"{_named(before)} was to be replaced by {_named(after)}")
        stamp = uuid.uuid4()

        def attempt() -> bool:
            stored = self._read_one(before)
            if stored is not None and stored.stamp == stamp:
                return True  # By a try that was not answered.
            if stored is None or _compared(stored.job) != _compared(before):
                return False
            if not self._put("replace", after, stamp, stored.stamp).applied:
                raise Unanswered(f"{_named(before)} was changed while it was replaced", remedy="Try again")
            return True

        return self.requests.retries.run(attempt)

    def remove(self, job: Job) -> bool:
        """Take a job away, if it is still as it was. After a missed answer one that is gone counts as taken away by
        this call: it leaves nothing behind that could tell who did it, and its going gives nobody a right.
        """
        missed = False

        def attempt() -> bool:
            nonlocal missed
            stored = self._read_one(job)
            if stored is None:
                return missed
            if _compared(stored.job) != _compared(job):
                return False
            try:
                answer = self.requests.compare_and_set(
                    _doing("remove", job), statements.REMOVE_JOB, (*_place(job), stored.stamp)
                )
            except Unanswered:
                missed = True
                raise
            if not answer.applied:
                raise Unanswered(f"{_named(job)} was changed while it was removed", remedy="Try again")
            return True

        return self.requests.retries.run(attempt)

    def _read_one(self, job: Job) -> _Stored | None:
        rows = self.requests.read_once(_doing("read", job), statements.JOB, _place(job))
        return _stored(job.shard, rows[0]) if rows else None

    def _put(self, what: str, job: Job, stamp: uuid.UUID, instead_of: uuid.UUID | None) -> Answer:
        """Write a job once, if what stands there has the stamp `instead_of`, or nothing does."""
        values = (
            seconds_to_live(job.life),
            stamp,
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
        return self.requests.compare_and_set(_doing(what, job), statements.PUT_JOB, (*values, *_place(job), instead_of))


def _place(job: Job) -> tuple[object, ...]:
    return job.shard.dataset, job.shard.shard, job.bucket


def _compared(job: Job) -> tuple[object, ...]:
    return job.plan, job.state.value, job.epoch, job.worker, job.leased_until, job.renewals


def _named(job: Job) -> str:
    return f"the job for bucket {job.bucket} of shard {job.shard}"


def _doing(what: str, job: Job) -> str:
    return f"{what} {_named(job)}"


def _stored(shard: ShardId, row: Any) -> _Stored | None:
    if row.stamp is None:
        # Left over of columns that a node of schema version 2 did not write again: they may outlive the others.
        return None
    job = Job(
        shard=shard,
        bucket=row.bucket,
        plan=row.plan,
        start=row.start_offset,
        end=row.end_offset,
        groups=frozenset(row.groups),
        wants_keys=row.wants_keys,
        life=LIFE_OF_VERSION_2 if row.life is None else row.life,
        state=JobState(row.state),
        epoch=row.epoch,
        worker=row.worker,
        leased_until=row.leased_until,
        failures=row.failures,
        reason=row.reason,
        renewals=row.renewals or 0,
        settings=row.settings or "",
    )
    return _Stored(job, row.stamp)
