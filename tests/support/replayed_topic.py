"""A topic with scrapes, undecodable records and a transaction for replays on Spark, and their expected results."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession

from strandline.clock import ManualClock
from strandline.index.sample_limits import SampleLimits
from strandline.node.replay.kafka_records import LogSampler
from strandline.node.shard.log import NO_TIME
from strandline.recovery.replay.job_result import FAULTS, KEYS, RESULT, SUMMARY, JobResult, attempt_of
from strandline.recovery.replay.memory_runner import MemoryRunner
from strandline.recovery.replay.record_batch import RecordBatch
from strandline.recovery.replay.replay_input import ReplaySettings, SeriesBound
from strandline.recovery.replay.sampling import sample_job
from strandline.spark.executor_store import CassandraOpener
from strandline.spark.replay import KafkaTopic, ReplayEndpoints, SparkRunner
from strandline.store.cassandra.store import CassandraStore
from strandline.store.connection import CassandraConnection
from strandline.store.jobs import Job, JobResultOf
from strandline.store.rows import Segment, SegmentsOf
from strandline.wire.decode import Limits
from strandline.wire.record_headers import CHECKED_HEADERS, TIMES_HEADER, are_times_checked
from support.replay_openers import HangingOpener
from support.replays import HOUR, DictStore, leased_job

# The processes of a run share their Kafka, and each creates the topic that it needs.
TOPIC = f"replayed-{uuid4().hex[:8]}"
TESTS = Path(__file__).parents[2]
BUCKET = 497_000
START = BUCKET * HOUR
GROUPS = 4
# Small units, so that a job has several; and more than 200,000 samples, so that a partition has several tasks.
SETTINGS = ReplaySettings(GROUPS, HOUR, Limits(), SampleLimits(HOUR, HOUR), 48 * HOUR, unit_samples=20_000)
SERIES, SCRAPES = 4_000, 40
MINUTE = 60_000
# Times and headers of records whose samples are too old for the record's time, if it has one. One is marked as checked.
LATE_RECORDS: Sequence[tuple[int, Sequence[tuple[str, bytes | None]]]] = (
    (START + 3 * HOUR, [("another", b"header"), (TIMES_HEADER, None), (TIMES_HEADER, b"unchecked")]),
    (START + 3 * HOUR, [("another", b"header"), *CHECKED_HEADERS]),
    (START + 3 * HOUR, []),
    (NO_TIME, []),
)


@dataclass(frozen=True)
class Log:
    """The content of the topic as a committed reader sees it: batches by partition, and its end."""

    batches: dict[int, list[RecordBatch]]
    ends: dict[int, int]

    def read(self, shard: int, start: int, end: int) -> Iterator[RecordBatch]:
        for batch in self.batches[shard]:
            first, behind = np.searchsorted(batch.offsets, (start, end)).tolist()
            if first < behind:
                yield batch.part(first, behind)


def produce(
    producer: Producer,
    partition: int,
    value: bytes | None,
    time: int,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> None:
    producer.produce(TOPIC, value=value, partition=partition, timestamp=time, headers=list(headers))


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
                RecordBatch(
                    np.array([message.offset() for message in messages]),
                    np.array([message.timestamp()[1] for message in messages]),
                    np.array([are_times_checked(message.headers()) for message in messages]),
                    [message.value() or b"" for message in messages],
                )
            ]
    return Log(batches, ends)


@dataclass(frozen=True)
class ReplayEnvironment:
    """A keyspace, and everything that a runner needs."""

    connection: CassandraConnection
    store: CassandraStore
    topic: KafkaTopic
    sampler: LogSampler
    clock: ManualClock

    def runner(self, spark: SparkSession, opener: CassandraOpener | HangingOpener | None = None) -> SparkRunner:
        opener = opener or CassandraOpener(self.connection)
        return SparkRunner(spark, ReplayEndpoints(self.topic, self.sampler, self.store, opener), SETTINGS, self.clock)

    def bounds(self, job: Job) -> Sequence[SeriesBound]:
        return sample_job(job, SETTINGS, self.sampler).bounds(GROUPS, SETTINGS.unit_samples)


def jobs_of(log: Log, plan: str) -> list[Job]:
    """Buckets of both partitions: one that needs keys and all groups, one with some groups, and an empty one."""
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
                life=10 * HOUR,
            )
            made.append(replace(one, plan=plan))
    return made


def run_in_memory(log: Log, places: ReplayEnvironment, jobs: Sequence[Job]) -> tuple[DictStore, dict[Job, JobResult]]:
    store = DictStore()
    runner = MemoryRunner(store, log.read, SETTINGS, places.clock, bounds=places.bounds)
    return store, dict(runner.run(jobs, lambda _: None))


Stored = dict[tuple[object, ...], list[object]]


def stored_in(store: CassandraStore | DictStore, jobs: Sequence[Job]) -> Stored:
    """All stored bytes of some jobs, without their plans."""
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


def ancestors(process: int) -> set[int]:
    found = set()
    while process > 1:
        found.add(process)
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
        process = int(stat.rpartition(")")[2].split()[1])
    return found
