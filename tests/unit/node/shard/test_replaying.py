"""How an owner processes the jobs of its replay."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.node.shard.replaying import Replay, ReplayBucket
from strandline.recovery.replay.job_result import JobResult, attempt_of
from strandline.recovery.replay.record_counts import RecordCounts
from strandline.recovery.replay.result_codec import encode_result
from strandline.store.jobs import Job, JobResultOf, JobState
from strandline.store.protocol import Store
from strandline.store.rows import CutRow, Lifetime, ShardId
from strandline.store.sqlite import open_sqlite_store

pytestmark = pytest.mark.unit

HOUR = 3_600_000
SHARD = ShardId("metrics", 0)
CLOCK = ManualClock()
CUT = CutRow(7, 100, 200, expires=10**15)
WANTED = Job(SHARD, 7, "plan", 100, 200, frozenset({0, 1}), wants_keys=True, life=HOUR)
DONE = replace(WANTED, plan="another plan", state=JobState.DONE, epoch=1)


class NoWorker:
    def ensure_worker(self) -> None:
        """Does nothing: the worker is elsewhere."""

    def close(self) -> None:
        """Does nothing."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_sqlite_store(tmp_path / "store.sqlite", CLOCK)) as opened:
        yield opened


def leave(store: Store, job: Job) -> None:
    """Put a done job into the store, with its result."""
    store.add_job(job)
    where = JobResultOf(job.shard, job.bucket, attempt_of(job))
    result = JobResult((), RecordCounts(), data_expires=10**15)
    store.write_result(where, [encode_result(result)], Lifetime.from_present(CLOCK.now_ms(), HOUR))


def replay_of(store: Store) -> Replay:
    buckets = [ReplayBucket(CUT, WANTED.groups, WANTED)]
    return Replay(store, SHARD, buckets, NoWorker(), CLOCK, job_lifetime=HOUR, failures_allowed=3)


def test_a_done_job_that_matches_the_plan_is_used_whichever_plan_it_was_done_for(store: Store) -> None:
    leave(store, DONE)
    done = replay_of(store).next_done()
    assert done is not None
    assert done.job == DONE


@pytest.mark.parametrize(
    "job",
    [
        replace(DONE, end=150),
        replace(DONE, start=0),
        replace(DONE, groups=frozenset({0})),
        replace(DONE, wants_keys=False),
    ],
    ids=["shorter", "longer", "fewer groups", "no keys"],
)
def test_a_done_job_that_does_not_match_the_plan_is_not_used(store: Store, job: Job) -> None:
    """It belongs to another owner, which has made a new plan. This owner will be fenced at its next write."""
    leave(store, job)
    assert replay_of(store).next_done() is None
    assert store.jobs(SHARD) == [job]
