"""A dataset on a real stack: a topic whose records have times that the test chooses, settings, and the produced
samples.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from strandline.clock import SystemClock, wait_until
from strandline.node.bench.shard_process import ShardProcess
from strandline.node.settings.writing import write_settings
from strandline.node.stack import Stack
from strandline.spark.java_options import FAST_START, JAVA_OPTIONS
from strandline.store.cassandra.store import CassandraStore, open_cassandra_store
from strandline.store.rows import SegmentsOf, ShardId
from strandline.store.segment_codec import decode_segment, runs_checksum
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress
from support.cassandra_store import COPIES, connection_to
from support.own_cassandra import Servers

HOUR = 3_600_000
# Longer than any test takes from here to its last check of the stored data.
_LEFT_OF_THE_HOUR = 150_000
GROUPS = 4
PRODUCERS_TIMES = {
    "message.timestamp.type": "CreateTime",
    "message.timestamp.after.max.ms": str(HOUR),
    "retention.ms": "-1",
}
BROKERS_TIMES = {"message.timestamp.type": "LogAppendTime", "retention.ms": "-1"}
Sample = tuple[int, int, float]


class Deployment:
    """One dataset of some partitions. Record times are the producer's, unless `topic` says otherwise, so that the past
    can be written in a second.
    """

    def __init__(
        self,
        stack: Stack | Servers,
        folder: Path,
        *,
        partitions: int = 1,
        keyspace: str = "recovery",
        topic: Mapping[str, str] = PRODUCERS_TIMES,
        **sections: Mapping[str, object],
    ) -> None:
        self.name = f"recovery-{uuid4().hex[:8]}"
        self.folder, self.partitions = folder, partitions
        self.this_hour = _hour_with_time_left()
        self.kafka = {"bootstrap.servers": stack.kafka_bootstrap}
        new = NewTopic(self.name, num_partitions=partitions, replication_factor=1, config=dict(topic))
        admin = AdminClient(self.kafka)
        for made in admin.create_topics([new]).values():
            made.result(90)
        self._connection = connection_to(stack, keyspace)
        self.store: CassandraStore = open_cassandra_store(self._connection, SystemClock(), copies=COPIES)
        chosen: dict[str, dict[str, object]] = {
            "kafka": {"bootstrap_servers": [stack.kafka_bootstrap]},
            "cassandra": {
                "contact_points": [stack.cassandra_host],
                "port": stack.cassandra_port,
                "keyspace": keyspace,
            },
            "dataset": {
                "name": self.name,
                "flush_interval": "1h",
                "grace": "0s",
                "groups": GROUPS,
                "retention": "2d",
                "kafka_retention": "1d",
                "history": "0s",
            },
            "shard": {
                "data_dir": str(folder / "data"),
                "java_heap": "128m",
                "lucene_buffer": "16m",
                # A bucket is stored immediately, at any minute of the hour.
                "flush_spread": 0,
            },
            "spark": {"master": "local[2]"},
            "spark.properties": {f'"{JAVA_OPTIONS}"': FAST_START},
            "replay": {"mode": "spark", "worker_idle": "2s"},
        }
        for section, values in sections.items():
            chosen[section] = {**chosen.get(section, {}), **values}
        self.settings = write_settings(folder / "settings.toml", chosen)
        self.produced: dict[int, dict[tuple[int, int], float]] = {number: {} for number in range(partitions)}
        self.records = dict.fromkeys(range(partitions), 0)
        self._producer = Producer({**self.kafka, "acks": "all", "queue.buffering.max.messages": 100_000})

    def shard(self, number: int = 0) -> ShardId:
        return ShardId(self.name, number)

    def reopen_store(self) -> None:
        """Connect to the store again, which may be a new one if the old one was lost."""
        self.store = open_cassandra_store(self._connection, SystemClock(), copies=COPIES)

    def start(self, number: int = 0, *extra: str) -> ShardProcess:
        return ShardProcess(number, self.settings, self.folder, SystemClock(), extra)

    def produce(self, partition: int, time: int, series: Sequence[int]) -> None:
        """Produce a record with this time, and a sample of each of these series with the same time."""
        samples = {(number, time): float(time % 100_000 + number) for number in series}
        self.produced[partition] |= samples
        self.put(
            partition,
            compress(
                encode_request(
                    Series([("__name__", f"metric_{number % 50}"), ("number", str(number))], [(when, value)])
                    for (number, when), value in samples.items()
                )
            ),
            time,
        )

    def put(self, partition: int, body: bytes, time: int) -> None:
        self._producer.produce(self.name, value=body, partition=partition, timestamp=time)
        self.records[partition] += 1
        self._producer.poll(0)

    def flush(self) -> None:
        assert self._producer.flush(60) == 0

    def produce_hours(self, hours: int, *, records: int, series: int, partition: int = 0) -> None:
        """Produce this many complete hours before the current one, each with this many records of all series."""
        first = self.this_hour - hours * HOUR
        for number in range(hours * records):
            self.produce(partition, first + number * HOUR // records, range(series))
        self.flush()

    def command(self, *arguments: str, timeout: float = 240) -> tuple[int, Any]:
        """Run `strandline` with these settings and `--output json`. Returns the exit code and what it printed. In a
        separate process: some commands start a JVM, of which a process can have only one, with the options of its
        start.
        """
        script = Path(sys.executable).with_name("strandline")
        ended = subprocess.run(
            [sys.executable, str(script), *arguments, "--config", str(self.settings), "--output", "json"],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert ended.stdout, f"exit code {ended.returncode}: {ended.stderr}"
        return ended.returncode, json.loads(ended.stdout)

    def stored(self, number: int = 0) -> Iterator[tuple[int, float]]:
        """Time and value of each sample in the segments that the manifest references, after verification of the
        checksums.
        """
        shard = self.shard(number)
        manifest = self.store.manifest(shard)
        assert manifest is not None
        for row in manifest.groups:
            if row.superseded:
                continue
            segments = list(self.store.segments(SegmentsOf(shard, row.bucket, row.group, row.attempt)))
            assert (len(segments), runs_checksum(segments)) == (row.segments, row.checksum)
            for segment in segments:
                run = decode_segment(segment.data, named="test")
                assert np.all(np.diff(run.first_sample) > 0)
                yield from zip(run.time.tolist(), run.value.tolist(), strict=True)

    def check_stored(self, number: int = 0, *, before: int | None = None) -> None:
        """Assert that every sample that was produced (before a time) is stored exactly once."""
        expected = [
            (time, value) for (_, time), value in self.produced[number].items() if before is None or time < before
        ]
        assert sorted(self.stored(number)) == sorted(expected)


def _hour_with_time_left() -> int:
    """The current hour. Near its end, wait for the next one: the bucket ends with the hour, and records that the test
    expects to be after the last complete bucket would be stored.
    """
    clock = SystemClock()

    def has_time_left() -> bool:
        return clock.now_ms() % HOUR < HOUR - _LEFT_OF_THE_HOUR

    assert wait_until(has_time_left, timeout=2 * _LEFT_OF_THE_HOUR / 1000, clock=clock)
    return clock.now_ms() // HOUR * HOUR
