"""The history in the stores of tests/data: what was produced, and what a shard of an older schema version did with it.

The same calls recreate the log for a current shard, which has to find everything. Times are absolute, so that the log
is always the same.
"""

from dataclasses import replace

from strandline.node.shard.options import ReplayMode
from strandline.recovery.job_board import JobBoard
from strandline.recovery.replay.job_result import attempt_of
from strandline.recovery.replay.result_codec import read_result
from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.store.jobs import LIFE_OF_VERSION_2, Job, JobState
from strandline.store.protocol import Store
from strandline.store.rows import IndexBucketOf, SegmentsOf, ShardId
from support.shard_world import GRACE, HOUR, METRICS, MINUTE, START, World

SHARD = ShardId("metrics", 0)

STORED_HOURS = 3
"""The number of buckets that a shard has stored, with late samples in each."""
MISSED_HOURS = 3
"""The number of hours after that. Of their jobs, one is done, one is leased, and one is pending."""
LATE = ("late", "a")


def produce_hour(world: World, hour: int) -> None:
    """Produce the records of one hour, and let it end."""
    _wait_for(world, START + hour * HOUR)
    now = world.clock.now_ms()
    world.produce(*((metric, f"key-{hour % 2}", now, float(hour)) for metric in METRICS))
    world.produce((*LATE, now - 30 * HOUR, float(hour)))
    _wait_for(world, START + (hour + 1) * HOUR - GRACE)


def produce_all(world: World) -> None:
    """Produce the complete log, without a shard."""
    for hour in range(STORED_HOURS + MISSED_HOURS):
        produce_hour(world, hour)
    _wait_for(world, START + (STORED_HOURS + MISSED_HOURS) * HOUR)


def make(world: World, version: int) -> None:
    """Create the history, with a shard that has ended."""
    world.options = replace(world.options, owner_name=f"node-of-version-{version}")
    world.start()
    for hour in range(STORED_HOURS):
        produce_hour(world, hour)
        _wait_for(world, START + (hour + 1) * HOUR)
        world.settle()
    world.crash()
    for hour in range(STORED_HOURS, STORED_HOURS + MISSED_HOURS):
        produce_hour(world, hour)
    _wait_for(world, START + (STORED_HOURS + MISSED_HOURS) * HOUR)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    assert world.replays.worker(wave_records=1).step()
    board = JobBoard(world.sqlite, world.clock)
    pending = [job for job in board.jobs(world.options.shard) if not job.worker]
    assert board.lease(pending[0], "another worker") is not None
    world.crash()


def check_read(world: World, version: int) -> None:
    """Check that everything in the store can be read, and that what a version did not have has its default."""
    store, rows = world.sqlite, world.manifest()
    shape = store.dataset(SHARD.dataset)
    assert shape is not None
    assert (shape.flush_interval, shape.groups, shape.partitions) == (HOUR, 4, 1)
    assert (rows.state.epoch, rows.state.topic_id, rows.state.beats) == (2, "topic-1", 0)
    assert [cut.bucket for cut in rows.cuts] == list(range(1005, 998, -1))
    assert all(cut.last is None for cut in rows.cuts) == (version == 2)
    assert len(rows.groups) == 4 * STORED_HOURS
    assert {row.written_by for row in rows.groups} == {f"node-of-version-{version}"}
    assert sum(late.samples for row in rows.groups for late in row.late) == STORED_HOURS
    for row in rows.groups:
        assert len(list(store.segments(SegmentsOf(SHARD, row.bucket, row.group, row.attempt)))) == row.segments
        if row.index is not None:
            place = IndexBucketOf(SHARD, row.bucket, row.index.attempt)
            assert len(list(store.index_bucket(place))) == row.index.rows
    jobs = _jobs(world)
    assert [job.state for job in jobs] == [JobState.DONE, JobState.LEASED, JobState.PENDING]
    assert all(job.life == LIFE_OF_VERSION_2 for job in jobs) == (version == 2)
    assert {job.renewals for job in jobs} == {0}
    assert read_result(store, jobs[0]) is not None
    assert store.bulk_jobs(SHARD.dataset) == []


def check_continues(world: World) -> None:
    """A shard adopts the store: it uses the result of the done job, has the other jobs done, and finds everything."""
    done = _jobs(world)[0]
    # Version 3 wrote the name of the owner's process.
    world.machine.end(world.manifest().state.owner.rpartition("/")[0])
    world.replay_by(ReplayMode.SPARK)
    world.start()
    worker = world.replays.worker()
    for _ in range(2):
        while worker.step():
            pass
        # The lease of a worker that is gone has not been renewed for its term by then.
        world.pass_time(3 * MINUTE)
    world.settle()
    assert world.is_active()
    assert _jobs(world) == []
    assert {row.attempt for row in world.rows(done.bucket).values()} == {attempt_of(done)}
    world.check_all_found()
    world.crash()
    world.start()
    world.settle()
    world.check_all_found()


def check_bulk_jobs(store: Store) -> None:
    """Check that the additions of version 4 are usable."""
    part = BulkPart(SHARD.dataset, "job-1", 0, "{}", life=HOUR)
    job = BulkJob(SHARD.dataset, "job-1", "import", "{}", "a hash", 1, life=HOUR, created_at=0)
    assert store.add_bulk_parts([part])
    assert store.add_bulk_job(job)
    assert store.bulk_parts(SHARD.dataset, "job-1") == [part]
    assert store.bulk_jobs(SHARD.dataset) == [job]
    assert store.remove_bulk_parts([part])
    assert store.remove_bulk_job(job)


def a_job(shard: ShardId, *, bucket: int) -> Job:
    """A pending job."""
    return Job(shard, bucket, "plan", 0, 1, frozenset({0}), wants_keys=True, life=HOUR)


def _jobs(world: World) -> list[Job]:
    return list(world.sqlite.jobs(SHARD))


def _wait_for(world: World, time: int) -> None:
    world.pass_time(time - world.clock.now_ms())
