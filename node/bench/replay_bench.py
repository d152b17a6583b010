"""Measures replay jobs, from records in Kafka to segments and summaries in the store.

The runner of the jobs is a parameter, so that Spark, on one machine or on a cluster, can be compared with its in-memory
counterpart.
"""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from confluent_kafka import Producer

from strandline.errors import Retryable
from strandline.node.bench.scrapes import Scrapes
from strandline.node.replay.kafka_records import LogSampler
from strandline.node.shard.kafka_log import KafkaLog
from strandline.recovery.replay.runner import JobRunner
from strandline.store.jobs import Job

_TIMEOUT_S = 60.0


class NotProduced(Retryable):
    """Kafka did not accept the records of a measurement."""


@dataclass(frozen=True, slots=True)
class ReplayFigures:
    """The result of running some jobs. The CPU time is that of this process and of its ended children."""

    records: int
    samples: int
    stored_samples: int
    keys: int
    seconds: float
    cpu_seconds: float

    @property
    def samples_per_second(self) -> float:
        """Samples read per second of wall time."""
        return self.samples / self.seconds


def measure(runner: JobRunner, jobs: Sequence[Job]) -> ReplayFigures:
    """Run leased jobs once, and measure the time. To measure with a warm session, the caller must run other jobs
    before.
    """
    began, cpu = time.perf_counter(), sum(os.times()[:4])
    results = runner.run(jobs, lambda _: None).values()
    return ReplayFigures(
        records=sum(one.counts.records for one in results),
        samples=sum(one.counts.samples for one in results),
        stored_samples=sum(group.samples for one in results for group in one.groups),
        keys=sum(one.keys for one in results),
        seconds=time.perf_counter() - began,
        cpu_seconds=sum(os.times()[:4]) - cpu,
    )


def scraped_bodies(series: int, samples: int, first_time: int) -> Iterator[bytes]:
    """The records of consecutive scrapes with at least this number of samples."""
    scrapes = Scrapes(series, first_time)
    for _ in range(-(-samples // series)):
        yield from scrapes.next()


def fill_partition(
    bootstrap_servers: str, topic: str, partition: int, bodies: Iterable[bytes], record_time: int
) -> int:
    """Produce records with the same record time. Returns their number. All are in Kafka when this returns."""
    return fill_partition_at(bootstrap_servers, topic, partition, ((body, record_time) for body in bodies))


def fill_partition_at(bootstrap_servers: str, topic: str, partition: int, records: Iterable[tuple[bytes, int]]) -> int:
    """Produce records, each with its record time. Returns their number. All are in Kafka when this returns."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "acks": "all", "linger.ms": 5})
    failed: list[object] = []
    count = 0
    for body, record_time in records:
        while True:
            try:
                producer.produce(
                    topic,
                    value=body,
                    partition=partition,
                    timestamp=record_time,
                    on_delivery=lambda error, _: failed.append(error) if error is not None else None,
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
        count += 1
    if producer.flush(_TIMEOUT_S) or failed:
        raise NotProduced(f"Kafka did not accept all records: {failed[:1] or f'no answer in {_TIMEOUT_S:.0f} s'}")
    return count


def sampler_of(bootstrap_servers: str, topic: str) -> LogSampler:
    """Reads single records of a topic, from which a runner estimates the sizes of its jobs, as in a worker."""
    options = {"bootstrap.servers": bootstrap_servers}
    return LogSampler(lambda shard: KafkaLog(options, dataset="bench", topic=topic, partition=shard))
