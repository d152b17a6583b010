"""A shard's process that is asked over its socket, between a real Kafka and a real Cassandra: while it starts, while it
stores, and after it was killed.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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
from strandline.node.query.answers import SamplesAnswer, SeriesAnswer, TermsAnswer
from strandline.node.query.asks import LabelValuesAsk, SamplesAsk, SeriesAsk
from strandline.node.query.link_client import LinkClient
from strandline.node.query.queries import Cancellation, QueryUnavailable
from strandline.node.settings.writing import write_settings
from strandline.node.shard.kafka_topics import create_topic
from strandline.node.shard.report import ShardReport
from strandline.node.shard.status import Phase
from strandline.node.stack import Stack
from strandline.time_range import ALL_TIMES
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress

pytestmark = pytest.mark.system

CLOCK = SystemClock()
SERIES = 20
EVERY = (Matcher("__name__", MatchOp.EQUAL, "m"),)
Samples = dict[str, list[tuple[int, float]]]


class Asked:
    """A topic, a shard's process with its socket, and what was produced."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self.name = f"asked-{uuid4().hex[:8]}"
        self.folder, self.socket = folder, folder / "s"
        kafka = {"bootstrap.servers": stack.kafka_bootstrap}
        create_topic(kafka, self.name, partitions=1, replication=1, retention_ms=3_600_000)
        cassandra = {"contact_points": [stack.cassandra_host], "port": stack.cassandra_port, "keyspace": "asked"}
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
        assert self._producer.flush(30) == 0


@pytest.fixture
def asked(stack: Stack, tmp_path: Path) -> Asked:
    return Asked(stack, tmp_path)


@pytest.fixture
def client(asked: Asked) -> Iterator[LinkClient]:
    with closing(LinkClient(asked.socket, 0, CLOCK)) as made:
        yield made


def give() -> Cancellation:
    return Cancellation(CLOCK, 60.0)


def samples_of(client: LinkClient) -> tuple[Samples, tuple[str, ...]]:
    answer = client.ask(SamplesAsk(EVERY, ALL_TIMES, 1000, 1_000_000), give())
    assert isinstance(answer, SamplesAnswer)
    found: Samples = {}
    for place in range(len(answer.keys)):
        part = slice(int(answer.first_sample[place]), int(answer.first_sample[place + 1]))
        labels = decode_part_key(answer.keys.key(place))
        found[labels["number"]] = list(zip(answer.time[part].tolist(), answer.value[part].tolist(), strict=True))
    return found, answer.warnings


def reported(client: LinkClient, process: ShardProcess) -> ShardReport:
    """Its first report, as soon as there is one."""
    reports: list[ShardReport] = []

    def told() -> bool:
        with suppress(QueryUnavailable):
            reports.append(client.report(10.0))
        return bool(reports)

    assert wait_until(told, timeout=60, clock=CLOCK), process.log_text()
    return reports[0]


def active(client: LinkClient, process: ShardProcess, position: int) -> None:
    def is_active() -> bool:
        report = client.report(10.0)
        return report.status.phase is Phase.ACTIVE and report.position == position

    assert wait_until(is_active, timeout=120, clock=CLOCK), process.log_text()


def test_a_shard_tells_of_itself_from_its_start_and_answers_across_a_kill(asked: Asked, client: LinkClient) -> None:
    asked.produce(5)
    for _ in range(2):
        process = asked.start()
        try:
            report = reported(client, process)
            assert report.process.pid == process.pid
            assert report.status.phase in (Phase.ACQUIRING, Phase.RECOVERING_INDEX), "the socket was late"
            with pytest.raises(QueryUnavailable, match="shard 0 "):
                samples_of(client)
            active(client, process, asked.sent)
            asked.produce(5)
            assert wait_until(lambda: samples_of(client) == (asked.produced, ()), timeout=60, clock=CLOCK)
            # Once more, when some of it is stored and the rest is in memory.
            process.wait_for("something is stored", lambda one: one["counters"]["stored_samples"] > 0)
            assert samples_of(client) == (asked.produced, ())
            series = client.ask(SeriesAsk((EVERY,), None, 7), give())
            assert isinstance(series, SeriesAnswer)
            assert (len(series.keys), series.more) == (7, True)
            values = client.ask(LabelValuesAsk("number", (), None, 100), give())
            assert isinstance(values, TermsAnswer)
            assert values.terms() == sorted(asked.produced)
            with pytest.raises(InvalidMatcher):
                client.ask(SeriesAsk(((Matcher("a", MatchOp.MATCH, "["),),), None, 7), give())
        finally:
            process.kill()
        with pytest.raises(QueryUnavailable):
            samples_of(client)


def test_a_shard_that_is_killed_while_it_answers_leaves_nobody_waiting(asked: Asked, client: LinkClient) -> None:
    asked.produce(1)
    process = asked.start()
    try:
        reported(client, process)
        active(client, process, asked.sent)
        with ThreadPoolExecutor(1) as threads, process.held_still():
            asking = threads.submit(samples_of, client)
            assert not asking.done()
            process.kill()
            with pytest.raises(QueryUnavailable, match="shard 0 "):
                asking.result(30)
    finally:
        process.kill()


def test_a_stop_takes_the_socket_away(asked: Asked, client: LinkClient) -> None:
    process = asked.start()
    try:
        reported(client, process)
        active(client, process, 0)
        assert asked.socket.exists()
        assert process.terminate() == ExitCode.OK
        assert not asked.socket.exists()
    finally:
        process.kill()
