"""A local Spark with a real Kafka and a real Cassandra: its Kafka source, our kernels in its workers, replays compared
with the in-memory runner, and an import compared with one without Spark. All in one file, so that they share one JVM.
"""

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from strandline.class_archives import FOLDER
from strandline.node.bench.fleet import SERIES_A_RECORD
from strandline.node.bench.process_cpu import spark_drivers
from strandline.node.stack import Stack
from strandline.recovery.replay.job_result import SUMMARY, JobResult
from strandline.recovery.replay.result_codec import read_faults, read_result, read_summary
from strandline.setup.installation import Installation
from strandline.spark.decoding import tally_records
from strandline.spark.executor_store import CassandraOpener
from strandline.spark.java_options import FAST_START, JAVA_OPTIONS
from strandline.spark.kafka_source import OffsetRange, read_ranges, source_options
from strandline.spark.session import SparkUnavailable, spark_session
from strandline.spark.shuffle_slots import shuffle_slots
from strandline.spark.watching import RecordsGone
from strandline.store.jobs import Job
from strandline.wire.decode import Limits
from strandline.wire.snappy import decompress
from support.capture import captured_bodies
from support.executor_imports import Imports, executors_of
from support.kafka_part import make_topic
from support.remote_write import WriteRequest
from support.replay_openers import HangingOpener
from support.replayed_topic import (
    BUCKET,
    SCRAPES,
    SERIES,
    START,
    Log,
    ReplayEnvironment,
    ancestors,
    jobs_of,
    run_in_memory,
    stored_in,
)
from support.replays import HOUR, POISON, leased_job
from support.stack import STACK_TIMEOUT, eventually

pytestmark = pytest.mark.system

TESTS = Path(__file__).parents[2]
TRAFFIC = "real-traffic"
RANGES = [OffsetRange(0, 3, 17), OffsetRange(1, 0, 20)]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    installed = Installation.load()
    properties = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        # Not from the environment: the JVM may be that of an earlier session of this process.
        "spark.executorEnv.PYTHONPATH": str(TESTS),
        JAVA_OPTIONS: FAST_START,
    }
    with spark_session("tests", properties, jars=installed.spark_jars, java_home=installed.java_home) as session:
        yield session


@dataclass(frozen=True)
class Replayed:
    """Jobs that were run once, their results, and the reported progress."""

    jobs: Sequence[Job]
    results: dict[Job, JobResult]
    fractions: Sequence[float]


@pytest.fixture(scope="module")
def replayed(spark: SparkSession, log: Log, places: ReplayEnvironment) -> Replayed:
    jobs = jobs_of(log, "plan")
    fractions: list[float] = []
    return Replayed(jobs, dict(places.runner(spark).run(jobs, fractions.append)), fractions)


def test_spark_produces_the_same_bytes_as_the_in_memory_runner(
    log: Log, places: ReplayEnvironment, replayed: Replayed
) -> None:
    twins_store, twins_results = run_in_memory(log, places, replayed.jobs)
    assert replayed.results == twins_results
    found = stored_in(places.store, replayed.jobs)
    assert found == stored_in(twins_store, replayed.jobs)
    assert len(found[replayed.jobs[0].shard, BUCKET, SUMMARY]) > 1
    assert sum(group.samples for result in replayed.results.values() for group in result.groups) > SERIES * SCRAPES


def test_spark_keeps_late_samples_that_were_checked_or_whose_record_has_no_time(replayed: Replayed) -> None:
    first, empty, last = replayed.jobs[:3]
    # Two of the late records are neither marked as checked nor without a time.
    assert [replayed.results[job].counts.too_old for job in (first, empty, last)] == [0, 0, 2 * SERIES_A_RECORD]


def test_progress_is_reported_from_0_to_1(replayed: Replayed) -> None:
    assert list(replayed.fractions) == sorted(replayed.fractions)
    assert all(0 <= fraction <= 1 for fraction in replayed.fractions)


def test_the_node_reads_the_results_of_a_job(places: ReplayEnvironment, replayed: Replayed) -> None:
    first, empty, _ = replayed.jobs[:3]
    result = read_result(places.store, first)
    assert result == replayed.results[first]
    assert [(fault.offset, fault.time, fault.value) for fault in read_faults(places.store, first)] == [
        (31, START + 7, POISON),
        (32, START + 8, b""),
    ]
    summary, keys = read_summary(places.store, first)
    assert len(summary) == len(keys(np.arange(len(summary)))) == SERIES
    nothing = read_result(places.store, empty)
    assert nothing is not None
    assert (nothing.counts.records, [group.group for group in nothing.groups]) == (0, [1])


def test_running_jobs_twice_changes_nothing(spark: SparkSession, places: ReplayEnvironment, replayed: Replayed) -> None:
    once = stored_in(places.store, replayed.jobs)
    places.runner(spark).run(replayed.jobs, lambda _: None)
    assert stored_in(places.store, replayed.jobs) == once


def test_a_task_whose_python_process_is_killed_runs_again(
    spark: SparkSession, log: Log, places: ReplayEnvironment, tmp_path: Path
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
    opener = HangingOpener(CassandraOpener(places.connection), marker)
    places.runner(spark, opener).run(jobs, lambda _: None)
    killer.join(STACK_TIMEOUT)
    assert len(killed) == 1
    assert stored_in(places.store, jobs) == stored_in(run_in_memory(log, places, jobs)[0], jobs)


@pytest.mark.parametrize("is_begun", [False, True])
def test_an_exception_in_the_progress_callback_ends_the_run(
    spark: SparkSession, log: Log, places: ReplayEnvironment, tmp_path: Path, *, is_begun: bool
) -> None:
    class LostError(Exception):
        pass

    def lose(_: float) -> None:
        if not is_begun or marker.exists():
            raise LostError

    jobs = jobs_of(log, f"ended-{is_begun}")
    marker = tmp_path / "worker"
    with pytest.raises(LostError):
        places.runner(spark, HangingOpener(CassandraOpener(places.connection), marker)).run(jobs, lose)
    assert read_result(places.store, jobs[0]) is None
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()


def test_an_import_on_a_local_spark_produces_the_same_parts_report_and_records_as_in_process(
    spark: SparkSession, imports: Imports
) -> None:
    job = imports.planned("local")
    with executors_of(spark.sparkContext, imports.opener) as runner:
        imports.worker(runner).run_until_done(job.job)
    imports.check_same("local", "in-process")


def test_each_unit_is_written_by_a_separate_task(spark: SparkSession) -> None:
    numbers = spark.createDataFrame([(number,) for number in shuffle_slots(7)], "slot int").repartition(7, "slot")
    rows = numbers.selectExpr("slot", "spark_partition_id() AS task").collect()
    assert [row.slot for row in sorted(rows, key=lambda row: row.task)] == shuffle_slots(7)
    assert sorted(row.task for row in rows) == list(range(7))


def test_a_worker_loads_modules_before_its_first_task(spark: SparkSession) -> None:
    def modules(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys  # noqa: PLC0415 - of the worker

        yield pa.RecordBatch.from_pydict({"name": list(sys.modules)})

    loaded = {row.name for row in spark.range(1).mapInArrow(modules, "name string").collect()}
    assert {"strandline.spark.tasks", "strandline.spark.part_task", "strandline.jobs.importing.opener"} <= loaded


def test_records_that_kafka_no_longer_has_fail_the_run(
    spark: SparkSession, places: ReplayEnvironment, stack: Stack
) -> None:
    name = "partly-deleted"
    client = {"bootstrap.servers": stack.kafka_bootstrap, "log_level": 0}
    admin = AdminClient(client)
    for made in admin.create_topics([NewTopic(name, 1, 1, config={"retention.ms": "-1"})]).values():
        made.result(90)
    producer = Producer(client)
    for _ in range(20):
        producer.produce(name, value=POISON, partition=0, timestamp=START)
    assert producer.flush(90) == 0
    for deleted in admin.delete_records([TopicPartition(name, 0, 10)]).values():
        deleted.result(90)
    job = replace(leased_job(5, 20, life=HOUR), plan="gone")
    gone = replace(places, topic=replace(places.topic, topic=name), sampler=lambda *_: [POISON])
    with pytest.raises(RecordsGone, match="partly-deleted"):
        gone.runner(spark).run([job], lambda _: None)
    assert read_result(places.store, job) is None


@pytest.fixture(scope="module")
def produced(stack: Stack) -> dict[tuple[int, int], bytes]:
    """Real remote-write bodies in Kafka, by (partition, offset)."""
    client = {"bootstrap.servers": stack.kafka_bootstrap}
    make_topic(client, TRAFFIC)
    placed: dict[tuple[int, int], bytes] = {}
    producer = Producer({**client, "acks": "all"})
    for number, body in enumerate(captured_bodies()):

        def delivered(error: object, message: object, body: bytes = body) -> None:
            assert error is None
            placed[message.partition(), message.offset()] = body

        producer.produce(TRAFFIC, value=body, partition=number % 2, on_delivery=delivered)
    assert producer.flush(90) == 0
    assert len(placed) == 40
    return placed


@pytest.fixture
def options(stack: Stack) -> dict[str, str]:
    return source_options(stack.kafka_bootstrap, TRAFFIC, RANGES, max_records_per_task=6, client={})


def test_spark_reads_exactly_the_requested_offsets(
    spark: SparkSession, produced: dict[tuple[int, int], bytes], options: dict[str, str]
) -> None:
    rows = read_ranges(spark, options).collect()
    read = {(row.partition, row.offset): bytes(row.value) for row in rows}
    wanted = {
        (each.partition, offset): produced[each.partition, offset]
        for each in RANGES
        for offset in range(each.start, each.end)
    }
    assert len(rows) == len(read) == 34
    assert read == wanted


def test_sparks_workers_decode_records_with_the_wire_kernels(
    spark: SparkSession, produced: dict[tuple[int, int], bytes], options: dict[str, str]
) -> None:
    tallied = {
        row.partition: (row.records, row.samples, row.faults)
        for row in tally_records(read_ranges(spark, options), Limits()).collect()
    }
    for each in RANGES:
        samples = sum(
            len(series.samples)
            for offset in range(each.start, each.end)
            for series in WriteRequest.FromString(
                decompress(produced[each.partition, offset], limit=1 << 25)
            ).timeseries
        )
        assert tallied[each.partition] == (each.end - each.start, samples, 0)


@pytest.mark.usefixtures("spark")
def test_the_driver_has_its_classes_from_the_archive_of_set_up() -> None:
    (driver,) = spark_drivers()
    assert f"{FOLDER}/spark.jsa" in Path(f"/proc/{driver}/maps").read_text()


def test_a_second_spark_session_is_refused_instead_of_ending_the_first(spark: SparkSession) -> None:
    installed = Installation.load()
    second = spark_session(
        "second", {"spark.master": "local[1]"}, jars=installed.spark_jars, java_home=installed.java_home
    )
    with pytest.raises(SparkUnavailable, match="already"), second:
        pass
    assert spark.range(3).count() == 3
