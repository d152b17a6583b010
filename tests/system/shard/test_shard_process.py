"""A shard's process with a real Kafka and a real Cassandra: killed, stopped and restarted."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from strandline.clock import SystemClock
from strandline.errors import ExitCode
from strandline.node.bench.shard_process import ShardProcess
from strandline.node.settings.writing import write_settings
from strandline.node.shard.kafka_topics import create_topic, dead_topic
from strandline.node.stack import Stack
from strandline.recovery.checkpoints import check_contiguous
from strandline.store.cassandra.store import CassandraStore, open_cassandra_store
from strandline.store.rows import SegmentsOf, ShardId
from strandline.store.segment_codec import decode_segment, runs_checksum
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress
from support.cassandra_store import COPIES, connection_to

pytestmark = pytest.mark.system

KEYSPACE = "shard_process"
GROUPS = 4
SERIES = 30


class Deployment:
    """A separate topic, a shard's settings, and the produced samples: value by (series, time)."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self.name = f"shard-process-{uuid4().hex[:8]}"
        self.folder = folder
        self.kafka = {"bootstrap.servers": stack.kafka_bootstrap}
        create_topic(self.kafka, self.name, partitions=1, replication=1, retention_ms=3_600_000)
        self.store: CassandraStore = open_cassandra_store(connection_to(stack, KEYSPACE), SystemClock(), copies=COPIES)
        self.settings = write_settings(
            folder / "settings.toml",
            {
                "kafka": {"bootstrap_servers": [stack.kafka_bootstrap]},
                "cassandra": {
                    "contact_points": [stack.cassandra_host],
                    "port": stack.cassandra_port,
                    "keyspace": KEYSPACE,
                },
                "dataset": {
                    "name": self.name,
                    "flush_interval": "2s",
                    "grace": "0s",
                    "groups": GROUPS,
                    "retention": "1h",
                    "history": "0s",
                },
                "shard": {"data_dir": str(folder / "data"), "java_heap": "128m", "lucene_buffer": "16m"},
            },
        )
        self.produced: dict[tuple[int, int], float] = {}
        self.offsets = 0
        self.began = SystemClock().now_ms()
        self._producer = Producer({**self.kafka, "acks": "all"})

    @property
    def shard(self) -> ShardId:
        return ShardId(self.name, 0)

    def start(self) -> ShardProcess:
        return ShardProcess(0, self.settings, self.folder, SystemClock())

    def produce(self, scrapes: int) -> None:
        """Produce this many records, each with a sample of every series."""
        for _ in range(scrapes):
            time = self.began + self.offsets
            samples = {series: float(self.offsets * 1000 + series) for series in range(SERIES)}
            self.produced |= {(series, time): value for series, value in samples.items()}
            self.put(
                compress(
                    encode_request(
                        Series([("__name__", f"metric_{series}"), ("number", str(series))], [(time, value)])
                        for series, value in samples.items()
                    )
                )
            )

    def put(self, body: bytes) -> None:
        self._producer.produce(self.name, value=body, partition=0)
        self.offsets += 1
        assert self._producer.flush(90) == 0

    def all_is_stored(self) -> Callable[[object], bool]:
        return lambda status: status["checkpoint"] >= self.offsets  # type: ignore[index]

    def check_stored(self) -> None:
        """Assert that every sample is stored once, in segments that match the manifest."""
        manifest = self.store.manifest(self.shard)
        assert manifest is not None
        check_contiguous(sorted(manifest.cuts, key=lambda cut: cut.bucket), self.shard)
        found: list[tuple[int, float]] = []
        for row in manifest.groups:
            where = SegmentsOf(self.shard, row.bucket, row.group, row.attempt)
            segments = list(self.store.segments(where))
            assert (len(segments), runs_checksum(segments)) == (row.segments, row.checksum)
            runs = [decode_segment(segment.data, named="test") for segment in segments]
            assert sum(run.samples for run in runs) == row.samples
            for run in runs:
                found += zip(run.time.tolist(), run.value.tolist(), strict=True)
        assert sorted(found) == sorted((time, value) for (_, time), value in self.produced.items())


@pytest.fixture
def deployment(stack: Stack, tmp_path: Path) -> Iterator[Deployment]:
    deployed = Deployment(stack, tmp_path)
    with closing(deployed.store):
        yield deployed


def stored_something(status: object) -> bool:
    return status["counters"]["stored_samples"] > 0  # type: ignore[index]


def test_kills_at_any_point_lose_and_duplicate_nothing(deployment: Deployment) -> None:
    for round_ in range(3):
        # While no process runs, so that each round has something to store.
        deployment.produce(20)
        process = deployment.start()
        try:
            process.wait_for("some samples are stored", stored_something)
            deployment.produce(20)
            if round_:
                process.wait_for("a bucket is closed", lambda status: status["counters"]["cuts"] > 3)
        finally:
            process.kill()
    process = deployment.start()
    try:
        process.wait_for("all is stored", deployment.all_is_stored())
        status = process.wait_for("it is active", lambda status: status["phase"] == "active")
        assert status["keys"] == SERIES
        deployment.check_stored()
        assert process.terminate() == ExitCode.OK
    finally:
        process.kill()


def test_a_stop_gives_up_ownership_and_the_local_copy_is_used_again(deployment: Deployment) -> None:
    deployment.produce(10)
    process = deployment.start()
    try:
        process.wait_for("all is stored", deployment.all_is_stored())
        state = deployment.store.state(deployment.shard)
        assert state is not None
        assert state.seen_at is not None
        assert process.terminate() == ExitCode.OK
        assert json.loads((deployment.folder / "shard-0.json").read_text())["phase"] == "stopped"
    finally:
        process.kill()
    left = deployment.store.state(deployment.shard)
    assert left is not None
    assert left.seen_at is None
    assert "loading the index from the store" in process.log_text(), "the first start has no copy"
    again = deployment.start()
    try:
        again.wait_for("it is active", lambda status: status["phase"] == "active")
        assert again.status()["keys"] == SERIES
    finally:
        again.kill()
    assert again.log_text().count("loading the index from the store") == 1


def test_an_undecodable_record_is_copied_to_the_dead_letter_topic(deployment: Deployment) -> None:
    deployment.produce(1)
    deployment.put(b"no snappy block at all")
    deployment.produce(1)
    process = deployment.start()
    try:
        process.wait_for("all is stored", deployment.all_is_stored())
        assert process.status()["counters"]["dead_letters"] == 1
        deployment.check_stored()
        consumer = Consumer({**deployment.kafka, "group.id": "test", "enable.auto.commit": False})
        with closing(consumer):
            consumer.assign([TopicPartition(dead_topic(deployment.name), 0, 0)])
            (letter,) = consumer.consume(1, timeout=90)
        headers = dict(letter.headers())
        assert letter.value() == b"no snappy block at all"
        assert (headers["strandline-partition"], headers["strandline-offset"]) == (b"0", b"1")
        assert b"snappy" in headers["strandline-reason"]
    finally:
        process.kill()


def test_a_second_start_takes_the_shard_only_by_force(deployment: Deployment) -> None:
    first = deployment.start()
    second = None
    try:
        first.wait_for("it is active", lambda status: status["phase"] == "active")
        other = deployment.folder / "other"
        other.mkdir()
        text = deployment.settings.read_text().replace(str(deployment.folder / "data"), str(other / "data"))
        (other / "settings.toml").write_text(text)
        refused = ShardProcess(0, other / "settings.toml", other, SystemClock())
        assert refused.wait() == ExitCode.FENCED
        second = ShardProcess(0, other / "settings.toml", other, SystemClock(), ("--take",))
        second.wait_for("it is active", lambda status: status["phase"] == "active")
        deployment.produce(3)
        assert first.wait() == ExitCode.FENCED
        assert first.status()["phase"] == "fenced"
        second.wait_for("all is stored", deployment.all_is_stored())
        deployment.check_stored()
    finally:
        first.kill()
        if second is not None:
            second.kill()


def test_sigint_ends_the_process_too(deployment: Deployment) -> None:
    process = deployment.start()
    try:
        process.wait_for("it is active", lambda status: status["phase"] == "active")
        process.send(signal.SIGINT)
        assert process.wait() == ExitCode.OK
    finally:
        process.kill()
