"""Requests to a shard's process over its socket, with a real Kafka and a real Cassandra: during its start, while it
stores, and after a kill.
"""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from strandline.clock import SystemClock, wait_until
from strandline.errors import ExitCode
from strandline.index.documents import decode_part_key
from strandline.index.matchers import InvalidMatcher, Matcher, MatchOp
from strandline.node.bench.shard_process import ShardProcess
from strandline.node.query.answers import Answer, SamplesAnswer, SeriesAnswer, TermsAnswer
from strandline.node.query.frames import Message
from strandline.node.query.link_socket import receive, send, wait_forever
from strandline.node.query.lookup_frames import lookup_frame
from strandline.node.query.queries import QueryUnavailable
from strandline.node.query.shard_requests import LabelValuesRequest, SamplesRequest, SeriesRequest
from strandline.node.settings.writing import write_settings
from strandline.node.shard.kafka_topics import create_topic
from strandline.node.shard.report import ShardReport
from strandline.node.shard.status import Phase
from strandline.node.stack import Stack
from strandline.time_range import ALL_TIMES
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress
from support.links import LinkClient, Loop

pytestmark = pytest.mark.system

CLOCK = SystemClock()
SERIES = 20
EVERY = (Matcher("__name__", MatchOp.EQUAL, "m"),)
ALL_SAMPLES = SamplesRequest(EVERY, ALL_TIMES, 1000, 1_000_000)
Samples = dict[str, list[tuple[int, float]]]


class ShardProcessUnderTest:
    """A topic, a shard's process with its socket, and what was produced."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self.name = f"link-{uuid4().hex[:8]}"
        self.folder, self.socket = folder, folder / "s"
        kafka = {"bootstrap.servers": stack.kafka_bootstrap}
        create_topic(kafka, self.name, partitions=1, replication=1, retention_ms=3_600_000)
        cassandra = {"contact_points": [stack.cassandra_host], "port": stack.cassandra_port, "keyspace": "shard_link"}
        dataset = {"name": self.name, "flush_interval": "2s", "grace": "0s", "groups": 4, "retention": "1h"}
        self.settings = write_settings(
            folder / "settings.toml",
            {
                "kafka": {"bootstrap_servers": [stack.kafka_bootstrap]},
                "cassandra": cassandra | {"keyspace_copies": 1},
                "dataset": dataset | {"history": "0s"},
                "shard": {"data_dir": str(folder / "data"), "java_heap": "128m", "lucene_buffer": "16m"},
            },
        )
        self.produced: Samples = {str(number): [] for number in range(SERIES)}
        self.began, self.sent = CLOCK.now_ms(), 0
        self._producer = Producer({**kafka, "acks": "all"})

    def start(self) -> ShardProcess:
        return ShardProcess(0, self.settings, self.folder, CLOCK, ("--socket", str(self.socket)))

    def produce(self, records: int) -> None:
        for _ in range(records):
            time, value = self.began + self.sent, float(self.sent)
            series = [Series([("__name__", "m"), ("number", number)], [(time, value)]) for number in self.produced]
            self._producer.produce(self.name, value=compress(encode_request(series)), partition=0)
            for samples in self.produced.values():
                samples.append((time, value))
            self.sent += 1
        assert self._producer.flush(90) == 0


@pytest.fixture
def shard(stack: Stack, tmp_path: Path) -> ShardProcessUnderTest:
    return ShardProcessUnderTest(stack, tmp_path)


@pytest.fixture
def client(shard: ShardProcessUnderTest) -> Iterator[LinkClient]:
    with closing(Loop()) as loop, closing(LinkClient(shard.socket, loop, shard=0)) as made:
        yield made


def samples_of(client: LinkClient) -> tuple[Samples, tuple[str, ...]]:
    return as_samples(client.request(ALL_SAMPLES))


def as_samples(answer: Answer) -> tuple[Samples, tuple[str, ...]]:
    assert isinstance(answer, SamplesAnswer)
    found: Samples = {}
    for place in range(len(answer.keys)):
        part = slice(int(answer.first_sample[place]), int(answer.first_sample[place + 1]))
        labels = decode_part_key(answer.keys.key(place))
        found[labels["number"]] = list(zip(answer.time[part].tolist(), answer.value[part].tolist(), strict=True))
    return found, answer.warnings


def keys_of(answer: Answer | None) -> list[bytes]:
    assert isinstance(answer, SeriesAnswer)
    return [answer.keys.key(place) for place in range(len(answer.keys))]


def report_of(shard: ShardProcessUnderTest) -> ShardReport:
    """The report that the shard's process sends."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(shard.socket))
        send(connection, Message("report", {}), wait_forever)
        return ShardReport.from_json(receive(connection, wait_forever).columns[0].tobytes())


def reported(shard: ShardProcessUnderTest, process: ShardProcess) -> ShardReport:
    """The first report, once there is one."""
    reports: list[ShardReport] = []

    def has_reported() -> bool:
        with suppress(OSError):
            reports.append(report_of(shard))
        return bool(reports)

    assert wait_until(has_reported, timeout=60, clock=CLOCK), process.log_text()
    return reports[0]


def active(shard: ShardProcessUnderTest, process: ShardProcess, position: int) -> None:
    def is_active() -> bool:
        report = report_of(shard)
        return report.status.phase is Phase.ACTIVE and report.position == position

    assert wait_until(is_active, timeout=120, clock=CLOCK), process.log_text()


def test_a_shard_reports_from_its_start_and_answers_before_and_after_a_kill(
    shard: ShardProcessUnderTest, client: LinkClient
) -> None:
    shard.produce(5)
    for _ in range(2):
        process = shard.start()
        try:
            report = reported(shard, process)
            assert report.process.pid == process.pid
            assert report.status.phase in (Phase.ACQUIRING, Phase.RECOVERING_INDEX), "the socket was created late"
            with pytest.raises(QueryUnavailable, match="shard 0 "):
                samples_of(client)
            active(shard, process, shard.sent)
            shard.produce(5)
            assert wait_until(lambda: samples_of(client) == (shard.produced, ()), timeout=60, clock=CLOCK)
            # Again, when some samples are stored and the rest is in memory.
            process.wait_for("something is stored", lambda status: status["counters"]["stored_samples"] > 0)
            assert samples_of(client) == (shard.produced, ())
            series = client.request(SeriesRequest((EVERY,), None, 7))
            assert isinstance(series, SeriesAnswer)
            assert (len(series.keys), series.more) == (7, True)
            values = client.request(LabelValuesRequest("number", (), None, 100))
            assert isinstance(values, TermsAnswer)
            assert values.terms() == sorted(shard.produced)
            # The JVM gives the same answers.
            some_series = SeriesRequest(((*EVERY, Matcher("number", MatchOp.MATCH, "3|5|none")),), None, 7)
            frame = lookup_frame(some_series)
            assert frame is not None
            assert wait_until(lambda frame=frame: client.look_up(frame) is not None, timeout=60, clock=CLOCK)
            assert keys_of(client.look_up(frame)) == keys_of(client.request(some_series))
            assert wait_until(lambda: client.link.index_version() is not None, timeout=60, clock=CLOCK)
            with pytest.raises(InvalidMatcher):
                client.request(SeriesRequest(((Matcher("a", MatchOp.MATCH, "["),),), None, 7))
        finally:
            process.kill()
        with pytest.raises(QueryUnavailable):
            samples_of(client)
        assert client.link.index_version() is None


def test_a_kill_of_a_shard_fails_requests_in_progress(shard: ShardProcessUnderTest, client: LinkClient) -> None:
    shard.produce(1)
    process = shard.start()
    try:
        reported(shard, process)
        active(shard, process, shard.sent)

        async def kill_during_request() -> None:
            with process.suspended():
                pending = asyncio.ensure_future(client.send(ALL_SAMPLES))
                await asyncio.sleep(0)
                assert not pending.done()
                await asyncio.to_thread(process.kill)
                with pytest.raises(QueryUnavailable, match="shard 0 "):
                    await pending

        client.loop.run(kill_during_request())
    finally:
        process.kill()


def test_a_stop_removes_the_socket(shard: ShardProcessUnderTest) -> None:
    process = shard.start()
    try:
        reported(shard, process)
        active(shard, process, 0)
        assert shard.socket.exists()
        assert process.terminate() == ExitCode.OK
        assert not shard.socket.exists()
    finally:
        process.kill()
