"""Replay jobs on a real Spark, from a real Kafka into a real Cassandra, beside the twin in memory."""

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from strandline.clock import ManualClock, SystemClock
from strandline.index.sample_limits import SampleLimits
from strandline.node.bench.replay_bench import sampler_of, scraped_bodies
from strandline.node.replay.kafka_records import LogSampler
from strandline.node.stack import Stack
from strandline.recovery.replay.job_result import FAULTS, KEYS, RESULT, SUMMARY, JobResult, attempt_of
from strandline.recovery.replay.memory_runner import MemoryRunner, RecordBatch
from strandline.recovery.replay.replay_input import ReplaySettings, SeriesBound
from strandline.recovery.replay.result_codec import read_faults, read_result, read_summary
from strandline.recovery.replay.sampling import look_at
from strandline.setup.installation import Installation
from strandline.spark.executor_store import CassandraOpener
from strandline.spark.replay import KafkaTopic, ReplayPlaces, SparkRunner
from strandline.spark.session import spark_session
from strandline.spark.slots import slots
from strandline.spark.watching import RecordsGone
from strandline.store.cassandra.store import CassandraStore, open_cassandra_store
from strandline.store.connection import CassandraConnection
from strandline.store.jobs import Job, JobResultOf
from strandline.store.rows import Segment, SegmentsOf
from strandline.wire.decode import Limits
from support.cassandra_store import COPIES, connection_to
from support.replay_openers import DeadlyOpener
from support.replays import HOUR, POISON, DictStore, leased_job
from support.stack import PATIENCE, eventually

pytestmark = pytest.mark.system

TOPIC = "replayed"
TESTS = Path(__file__).parents[2]
BUCKET = 497_000
START = BUCKET * HOUR
GROUPS = 4
# Small units, so that a job has several; and more than 200,000 samples, so that a partition has several tasks.
SETTINGS = ReplaySettings(GROUPS, HOUR, Limits(), SampleLimits(HOUR, HOUR), 48 * HOUR, unit_samples=20_000)
SERIES, SCRAPES = 4_000, 40


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    installed = Installation.load()
    properties = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        # Not by our own environment: the JVM may be that of an earlier session of this process.
        "spark.executorEnv.PYTHONPATH": str(TESTS),
    }
    with spark_session("tests", properties, jars=installed.spark_jars, java_home=installed.java_home) as session:
        yield session


@dataclass(frozen=True)
class Log:
    """What lies in the topic, as a reader of committed records sees it: batches by partition, and where it ends."""

    batches: dict[int, list[RecordBatch]]
    ends: dict[int, int]

    def read(self, shard: int, start: int, end: int) -> Iterator[RecordBatch]:
        for offsets, times, values in self.batches[shard]:
            first, behind = np.searchsorted(offsets, (start, end)).tolist()
            if first < behind:
                yield offsets[first:behind], times[first:behind], values[first:behind]


@pytest.fixture(scope="module")
def log(stack: Stack) -> Log:
    """Two partitions with scrapes, a record that is none, one without a value, and a transaction that was aborted."""
    client = {"bootstrap.servers": stack.kafka_bootstrap, "log_level": 0}
    admin = AdminClient(client)
    for made in admin.create_topics([NewTopic(TOPIC, 2, 1, config={"retention.ms": "-1"})]).values():
        made.result(30)
    bodies = list(scraped_bodies(SERIES, SERIES * SCRAPES, START))
    producer = Producer({**client, "acks": "all"})
    for partition in (0, 1):
        for number, body in enumerate(bodies):
            produce(producer, partition, body, START + number)
            if number == 30:
                produce(producer, partition, POISON, START + 7)
                produce(producer, partition, None, START + 8)
    assert producer.flush(30) == 0
    aborted = Producer({**client, "transactional.id": "aborted"})
    aborted.init_transactions(30)
    aborted.begin_transaction()
    produce(aborted, 1, bodies[0], START)
    aborted.flush(30)
    aborted.abort_transaction(30)
    # What comes behind the marker, and brings a sample again with another value.
    produce(producer, 1, next(scraped_bodies(SERIES, SERIES, START)), START)
    assert producer.flush(30) == 0
    return read_log(client)


def produce(producer: Producer, partition: int, value: bytes | None, time: int) -> None:
    producer.produce(TOPIC, value=value, partition=partition, timestamp=time)


def read_log(client: dict[str, str | int]) -> Log:
    consumer = Consumer({**client, "group.id": "tests", "isolation.level": "read_committed"})
    with closing(consumer):
        batches, ends = {}, {}
        for partition in (0, 1):
            place = TopicPartition(TOPIC, partition, 0)
            ends[partition] = consumer.get_watermark_offsets(place, 30)[1]
            consumer.assign([place])
            messages = []
            while not messages or messages[-1].offset() < ends[partition] - 1:
                messages += consumer.consume(1000, 5)
            batches[partition] = [
                (
                    np.array([one.offset() for one in messages]),
                    np.array([one.timestamp()[1] for one in messages]),
                    [one.value() or b"" for one in messages],
                )
            ]
    return Log(batches, ends)


@dataclass(frozen=True)
class Places:
    """A keyspace, with all that a runner needs."""

    connection: CassandraConnection
    store: CassandraStore
    topic: KafkaTopic
    sampler: LogSampler
    clock: ManualClock

    def runner(self, spark: SparkSession, opener: CassandraOpener | DeadlyOpener | None = None) -> SparkRunner:
        opener = opener or CassandraOpener(self.connection)
        return SparkRunner(spark, ReplayPlaces(self.topic, self.sampler, self.store, opener), SETTINGS, self.clock)

    def bounds(self, job: Job) -> Sequence[SeriesBound]:
        return look_at(job, SETTINGS, self.sampler).bounds(GROUPS, SETTINGS.unit_samples)


@pytest.fixture(scope="module")
def places(stack: Stack) -> Iterator[Places]:
    connection = connection_to(stack, "replayed")
    with (
        closing(open_cassandra_store(connection, SystemClock(), copies=COPIES)) as store,
        closing(sampler_of(stack.kafka_bootstrap, TOPIC)) as sampler,
    ):
        topic = KafkaTopic(stack.kafka_bootstrap, TOPIC, {})
        # It stands still, so that two runs write the same dates.
        yield Places(connection, store, topic, sampler, ManualClock(SystemClock().now_ms()))


def jobs_of(log: Log, plan: str) -> list[Job]:
    """Buckets of both partitions: one that wants keys and all groups, one of some groups, one that is empty."""
    expires = SystemClock().now_ms() + 10 * HOUR
    made = []
    for shard, end in log.ends.items():
        cuts = [0, 40, 40, end]
        groups = [frozenset(range(GROUPS)), frozenset({1}), frozenset({0, 3})]
        for number in range(3):
            one = leased_job(
                cuts[number],
                cuts[number + 1],
                bucket=BUCKET + number,
                shard=shard,
                groups=groups[number],
                wants_keys=number != 1,
                expires=expires,
            )
            made.append(replace(one, plan=plan))
    return made


def by_twin(log: Log, places: Places, jobs: Sequence[Job]) -> tuple[DictStore, dict[Job, JobResult]]:
    store = DictStore()
    runner = MemoryRunner(store, log.read, SETTINGS, places.clock, bounds=places.bounds)
    return store, dict(runner.run(jobs, lambda _: None))


Stored = dict[tuple[object, ...], list[object]]


def stored_in(store: CassandraStore | DictStore, jobs: Sequence[Job]) -> Stored:
    """All bytes of some jobs, without their plans."""
    found: Stored = {}
    for job in jobs:
        for group in range(GROUPS):
            where = SegmentsOf(job.shard, job.bucket, group, attempt_of(job))
            segments: list[Segment] = list(store.segments(where))
            found[job.shard, job.bucket, group] = list(segments)
        for kind in (SUMMARY, KEYS, FAULTS, RESULT):
            place = JobResultOf(job.shard, job.bucket, attempt_of(job))
            found[job.shard, job.bucket, kind] = list(store.result(place, kind))
    return found


@dataclass(frozen=True)
class Replayed:
    """Jobs that were run once, their results, and what was heard meanwhile."""

    jobs: Sequence[Job]
    results: dict[Job, JobResult]
    heard: Sequence[float]


@pytest.fixture(scope="module")
def replayed(spark: SparkSession, log: Log, places: Places) -> Replayed:
    jobs = jobs_of(log, "plan")
    heard: list[float] = []
    return Replayed(jobs, dict(places.runner(spark).run(jobs, heard.append)), heard)


def test_spark_leaves_the_same_bytes_as_the_twin_in_memory(log: Log, places: Places, replayed: Replayed) -> None:
    twins_store, twins_results = by_twin(log, places, replayed.jobs)
    assert replayed.results == twins_results
    found = stored_in(places.store, replayed.jobs)
    assert found == stored_in(twins_store, replayed.jobs)
    assert len(found[replayed.jobs[0].shard, BUCKET, SUMMARY]) > 1
    assert sum(group.samples for one in replayed.results.values() for group in one.groups) > SERIES * SCRAPES


def test_progress_is_told_from_none_to_all(replayed: Replayed) -> None:
    assert list(replayed.heard) == sorted(replayed.heard)
    assert all(0 <= fraction <= 1 for fraction in replayed.heard)


def test_the_node_finds_what_a_job_left(places: Places, replayed: Replayed) -> None:
    first, empty, _ = replayed.jobs[:3]
    result = read_result(places.store, first)
    assert result == replayed.results[first]
    assert [(one.offset, one.time, one.value) for one in read_faults(places.store, first)] == [
        (31, START + 7, POISON),
        (32, START + 8, b""),
    ]
    summary, keys = read_summary(places.store, first)
    assert len(summary) == len(keys(np.arange(len(summary)))) == SERIES
    nothing = read_result(places.store, empty)
    assert nothing is not None
    assert (nothing.counts.records, [one.group for one in nothing.groups]) == (0, [1])


def test_running_jobs_twice_changes_nothing(spark: SparkSession, places: Places, replayed: Replayed) -> None:
    once = stored_in(places.store, replayed.jobs)
    places.runner(spark).run(replayed.jobs, lambda _: None)
    assert stored_in(places.store, replayed.jobs) == once


def test_a_task_whose_python_process_is_killed_is_run_again(
    spark: SparkSession, log: Log, places: Places, tmp_path: Path
) -> None:
    jobs = jobs_of(log, "killed")
    marker = tmp_path / "worker"
    killed = []

    def kill() -> None:
        assert eventually(marker.exists)
        worker = int(marker.read_text())
        assert os.getpid() in ancestors(worker)
        os.kill(worker, signal.SIGKILL)
        killed.append(worker)

    killer = threading.Thread(target=kill)
    killer.start()
    opener = DeadlyOpener(CassandraOpener(places.connection), marker)
    places.runner(spark, opener).run(jobs, lambda _: None)
    killer.join(PATIENCE)
    assert len(killed) == 1
    assert stored_in(places.store, jobs) == stored_in(by_twin(log, places, jobs)[0], jobs)


def ancestors(process: int) -> set[int]:
    found = set()
    while process > 1:
        found.add(process)
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
        process = int(stat.rpartition(")")[2].split()[1])
    return found


@pytest.mark.parametrize("is_begun", [False, True])
def test_what_hears_of_progress_may_end_the_run(
    spark: SparkSession, log: Log, places: Places, tmp_path: Path, *, is_begun: bool
) -> None:
    class LostError(Exception):
        pass

    def lose(_: float) -> None:
        if not is_begun or marker.exists():
            raise LostError

    jobs = jobs_of(log, f"ended-{is_begun}")
    marker = tmp_path / "worker"
    with pytest.raises(LostError):
        places.runner(spark, DeadlyOpener(CassandraOpener(places.connection), marker)).run(jobs, lose)
    assert read_result(places.store, jobs[0]) is None
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()


def test_each_unit_is_written_by_a_task_of_its_own(spark: SparkSession) -> None:
    numbers = spark.createDataFrame([(number,) for number in slots(7)], "slot int").repartition(7, "slot")
    rows = numbers.selectExpr("slot", "spark_partition_id() AS task").collect()
    assert [row.slot for row in sorted(rows, key=lambda row: row.task)] == slots(7)
    assert sorted(row.task for row in rows) == list(range(7))


def test_records_that_kafka_no_longer_has_fail_the_run(spark: SparkSession, places: Places, stack: Stack) -> None:
    name = "partly-deleted"
    client = {"bootstrap.servers": stack.kafka_bootstrap, "log_level": 0}
    admin = AdminClient(client)
    for made in admin.create_topics([NewTopic(name, 1, 1, config={"retention.ms": "-1"})]).values():
        made.result(30)
    producer = Producer(client)
    for _ in range(20):
        producer.produce(name, value=POISON, partition=0, timestamp=START)
    assert producer.flush(30) == 0
    for deleted in admin.delete_records([TopicPartition(name, 0, 10)]).values():
        deleted.result(30)
    job = replace(leased_job(5, 20, expires=SystemClock().now_ms() + HOUR), plan="gone")
    gone = replace(places, topic=replace(places.topic, topic=name), sampler=lambda *_: [POISON])
    with pytest.raises(RecordsGone, match="partly-deleted"):
        gone.runner(spark).run([job], lambda _: None)
    assert read_result(places.store, job) is None
