"""Sampling records for a worker's estimates, and checking the log before a run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from strandline.node.replay.kafka_records import CheckedRunner, LogSampler
from strandline.node.shard.memory_log import MemoryLog
from strandline.recovery.offset_policy import DataLost, LogMismatch
from strandline.recovery.replay.job_result import JobResult
from strandline.store.jobs import Job
from strandline.store.rows import ShardId
from support.shard_world import World

pytestmark = pytest.mark.unit


@pytest.fixture
def log() -> MemoryLog:
    log = MemoryLog()
    for number in range(10):
        if number == 4:
            transaction = log.begin()
            transaction.append(b"taken back", 0)
            transaction.abort()  # Offsets 4 and 5.
        log.append(b"%d" % number, 0)
    return log


@pytest.fixture
def sampler(log: MemoryLog) -> Iterator[LogSampler]:
    with closing(LogSampler(lambda _shard: log)) as sampler:
        yield sampler


def test_records_are_those_at_the_offsets(sampler: LogSampler) -> None:
    assert sampler(0, [0, 3, 6], 12) == [b"0", b"3", b"4"]


def test_a_missing_offset_is_replaced_by_the_next_record_and_none_is_repeated(sampler: LogSampler) -> None:
    assert sampler(0, [4, 5, 6, 7], 12) == [b"4", b"5"]


def test_no_record_after_the_end_is_sampled(sampler: LogSampler) -> None:
    assert sampler(0, [3, 4], 6) == [b"3"]
    assert sampler(0, [11, 12], 12) == [b"9"]


class RecordingRunner:
    """A runner that only records its calls."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def check(self, job: Job) -> None:
        """Accepts any job."""

    def run(self, jobs: Sequence[Job], on_progress: Callable[[float], None]) -> Mapping[Job, JobResult]:
        del on_progress
        self.jobs += jobs
        return {}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    for _ in range(5):
        world.produce(("m", "a", world.clock.now_ms(), 1.0))
    world.start()
    yield world
    world.close()


def jobs_of(world: World) -> list[Job]:
    shard: ShardId = world.options.shard
    return [
        Job(shard, bucket, "plan", bucket, bucket + 2, frozenset({0}), wants_keys=True, life=10**9) for bucket in (1, 3)
    ]


def checked(world: World, runner: RecordingRunner) -> CheckedRunner:
    return CheckedRunner(runner, world.sqlite, LogSampler(lambda _shard: world.log.another_reader()))


def test_an_unchanged_log_is_read(world: World) -> None:
    runner = RecordingRunner()
    checked(world, runner).run(jobs_of(world), lambda _: None)
    assert runner.jobs == jobs_of(world)


def test_a_log_that_has_lost_a_jobs_first_record_is_not_read(world: World) -> None:
    runner = RecordingRunner()
    world.log.delete_before(2)
    with pytest.raises(DataLost, match="from offset 1 up to 2"):
        checked(world, runner).run(jobs_of(world), lambda _: None)
    assert runner.jobs == []


def test_another_topic_of_the_same_name_is_not_read(world: World) -> None:
    runner = RecordingRunner()
    world.log.recreate()
    for _ in range(9):
        world.log.append(b"", 0)
    with pytest.raises(LogMismatch, match="another topic"):
        checked(world, runner).run(jobs_of(world), lambda _: None)
    assert runner.jobs == []
