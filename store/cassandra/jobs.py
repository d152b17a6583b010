"""Replay jobs: one a bucket, each change a compare-and-set."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from strandline.clock import Clock
from strandline.store.cassandra import statements
from strandline.store.cassandra.conditional import Settled, settle
from strandline.store.cassandra.expiry import seconds_to_live
from strandline.store.cassandra.failures import Unanswered
from strandline.store.cassandra.requests import Answer, Requests
from strandline.store.jobs import Job, JobState
from strandline.store.rows import ShardId


@dataclass(frozen=True, slots=True)
class _Stored:
    """A job, and the stamp of the write that it is from."""

    job: Job
    stamp: uuid.UUID


@dataclass(frozen=True, slots=True)
class Jobs:
    """The table of jobs."""

    requests: Requests
    clock: Clock

    def read(self, shard: ShardId) -> Sequence[Job]:
        """A shard's jobs that have not expired, in order of their buckets."""
        rows = self.requests.read(f"read the jobs of shard {shard}", statements.JOBS, (shard.dataset, shard.shard))
        now = self.clock.now_ms()
        return [stored.job for stored in (_stored(shard, row) for row in rows) if stored.job.expires > now]

    def add(self, job: Job) -> bool:
        """Put a job in place, unless there is one; whether it is there now as given."""
        stamp = uuid.uuid4()

        def attempt() -> bool:
            # Also after a try that was not answered: then this finds what it wrote.
            stored = self._read_one(job)
            if stored is not None and stored.job.expires > self.clock.now_ms():
                return stored.job == job
            condition = None if stored is None else stored.stamp
            answer = self.requests.compare_and_set(
                _doing("add", job), statements.PUT_JOB, (*self._values(job, stamp), *_place(job), condition)
            )
            if not answer.applied:
                raise Unanswered(f"another job was put into the place of {_named(job)}", remedy="Try again")
            return True

        return self.requests.retries.run(attempt)

    def replace(self, before: Job, after: Job) -> bool:
        """Put `after` in the place of `before`, if that is still as it was."""
        stamp = uuid.uuid4()

        def look() -> Settled[bool] | None:
            stored = self._read_one(before)
            if stored is not None and stored.stamp == stamp:
                return Settled(True)
            return None if self._is_same(before, stored) else Settled(False)

        return settle(
            self.requests.retries,
            send=lambda: self.requests.compare_and_set(
                _doing("replace", before),
                statements.REPLACE_JOB,
                (*self._values(after, stamp), *_place(before), *self._sameness(before)),
            ),
            answered=_applied,
            look=look,
        )

    def remove(self, job: Job) -> bool:
        """Take a job away, if it is still as it was. After a missed answer one that is gone counts as taken away by
        this call: it leaves nothing behind that could tell who did it, and its going gives nobody a right.
        """

        def look() -> Settled[bool] | None:
            stored = self._read_one(job)
            if stored is None:
                return Settled(True)
            return None if self._is_same(job, stored) else Settled(False)

        return settle(
            self.requests.retries,
            send=lambda: self.requests.compare_and_set(
                _doing("remove", job), statements.REMOVE_JOB, (*_place(job), *self._sameness(job))
            ),
            answered=_applied,
            look=look,
        )

    def _read_one(self, job: Job) -> _Stored | None:
        rows = self.requests.read_once(_doing("read", job), statements.JOB, _place(job))
        return _stored(job.shard, rows[0]) if rows else None

    def _values(self, job: Job, stamp: uuid.UUID) -> tuple[object, ...]:
        """For a statement that sets a job, up to the place that it stands in."""
        return (
            seconds_to_live(job.expires, self.clock.now_ms()),
            stamp,
            job.plan,
            job.start,
            job.end,
            job.groups,
            job.wants_keys,
            job.expires,
            job.state.value,
            job.epoch,
            job.worker,
            job.leased_until,
            job.failures,
            job.reason,
        )

    def _sameness(self, job: Job) -> tuple[object, ...]:
        """For the condition that a job is still the same, and has not expired."""
        return (*_compared(job), self.clock.now_ms())

    def _is_same(self, job: Job, stored: _Stored | None) -> bool:
        if stored is None or stored.job.expires <= self.clock.now_ms():
            return False
        return _compared(stored.job) == _compared(job)


def _applied(answer: Answer) -> bool:
    return answer.applied


def _place(job: Job) -> tuple[object, ...]:
    return job.shard.dataset, job.shard.shard, job.bucket


def _compared(job: Job) -> tuple[object, ...]:
    return job.plan, job.state.value, job.epoch, job.worker, job.leased_until


def _named(job: Job) -> str:
    return f"the job for bucket {job.bucket} of shard {job.shard}"


def _doing(what: str, job: Job) -> str:
    return f"{what} {_named(job)}"


def _stored(shard: ShardId, row: Any) -> _Stored:
    job = Job(
        shard=shard,
        bucket=row.bucket,
        plan=row.plan,
        start=row.start_offset,
        end=row.end_offset,
        groups=frozenset(row.groups),
        wants_keys=row.wants_keys,
        expires=row.expires,
        state=JobState(row.state),
        epoch=row.epoch,
        worker=row.worker,
        leased_until=row.leased_until,
        failures=row.failures,
        reason=row.reason,
    )
    return _Stored(job, row.stamp)
