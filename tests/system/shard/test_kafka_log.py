"""Reading a partition: properties that only a real Kafka can show."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest
from confluent_kafka import Producer

from strandline.clock import SystemClock
from strandline.node.shard.kafka_errors import LogDamaged
from strandline.node.shard.kafka_log import KafkaLog
from strandline.node.shard.log import LogUnreachable, TopicUnfit
from strandline.node.stack import Stack
from support.partition_logs import answered, offsets, read_on, values
from support.real_kafka import TIMEOUT, TemporaryTopic, eventually, fresh_topic

pytestmark = pytest.mark.system

OpenLog = Callable[..., KafkaLog]


@pytest.fixture
def topic(stack: Stack) -> TemporaryTopic:
    return TemporaryTopic({"bootstrap.servers": stack.kafka_bootstrap})


@pytest.fixture
def open_log(stack: Stack) -> Iterator[OpenLog]:
    with ExitStack() as opened:

        def open_one(
            topic: str, partition: int = 0, *, gone_after: float = 60.0, **options: str | int | bool
        ) -> KafkaLog:
            client = {"bootstrap.servers": stack.kafka_bootstrap, "socket.timeout.ms": 10_000, **options}
            log = KafkaLog(
                client, dataset="system", topic=topic, partition=partition, watch_every=0.2, gone_after=gone_after
            )
            return opened.enter_context(closing(log))

        yield open_one


def fill(topic: TemporaryTopic, count: int, size: int) -> None:
    """Many records in few requests; each begins with its offset."""
    producer = Producer({**topic.client, "linger.ms": 20})
    for number in range(count):
        producer.produce(topic.name, value=b"%08d" % number + bytes(size), partition=0)
        producer.poll(0)
    assert producer.flush(TIMEOUT) == 0


def test_reading_continues_exactly_at_a_seek_despite_prefetched_records(
    topic: TemporaryTopic, open_log: OpenLog
) -> None:
    fill(topic, count=3000, size=2000)
    log, choose = open_log(topic.name), random.Random(7)  # noqa: S311 - the same places each time
    for _ in range(60):
        start = choose.randrange(3000)
        log.seek(start)
        position = start
        for _ in range(choose.randrange(1, 4)):
            records = log.poll(choose.choice((1, 10, 500)), TIMEOUT)
            assert records.offsets.tolist() == list(range(position, position + len(records)))
            assert [int(value[:8]) for value in records.values] == records.offsets.tolist()
            position = records.position
            if position == 3000:
                break


def test_a_poll_returns_as_soon_as_there_are_records(topic: TemporaryTopic, open_log: OpenLog) -> None:
    log, clock = open_log(topic.name), SystemClock()
    log.seek(0)
    log.poll(1, 0.3)
    producing = threading.Timer(0.1, topic.append, (b"value",))
    begun = clock.monotonic()
    producing.start()
    assert len(log.poll(1000, TIMEOUT)) == 1
    assert clock.monotonic() - begun < TIMEOUT / 3
    producing.join()


def test_a_record_larger_than_a_fetch_is_read(topic: TemporaryTopic, open_log: OpenLog) -> None:
    topic.append(bytes(500_000))
    topic.append(b"next")
    log = open_log(topic.name, **{"fetch.message.max.bytes": 10_000})
    log.seek(0)
    assert [len(value) for value in values(read_on(log))] == [500_000, 4]


def test_a_record_without_a_value_is_an_empty_record(topic: TemporaryTopic, open_log: OpenLog) -> None:
    producer = Producer(topic.client)
    producer.produce(topic.name, value=None, key=b"key", partition=0)
    assert producer.flush(TIMEOUT) == 0
    log = open_log(topic.name)
    log.seek(0)
    assert values(read_on(log)) == [b""]


def test_damaged_records_are_an_error_and_never_skipped(stack: Stack, topic: TemporaryTopic, open_log: OpenLog) -> None:
    for number in range(4):
        topic.append(b"number %d" % number)
    (segment,) = stack.folder.data("kafka").glob(f"{topic.name}-0/*.log")
    content = segment.read_bytes()
    with segment.open("r+b") as file:
        file.seek(content.index(b"number 2"))
        file.write(b"NUMBER 2")
    log = open_log(topic.name)
    log.seek(0)
    read = log.poll(10, TIMEOUT)
    assert read.offsets.tolist() == [0, 1]
    for _ in range(2):
        with pytest.raises(LogDamaged, match=rf"{topic.name} can't be read at offset 2: .*CRC"):
            log.poll(10, TIMEOUT)
    log.seek(3)
    assert values(read_on(log)) == [b"number 3"]


def test_the_id_is_the_one_that_kafka_stores(stack: Stack, topic: TemporaryTopic, open_log: OpenLog) -> None:
    written = stack.folder.data("kafka") / f"{topic.name}-0" / "partition.metadata"
    eventually(written.exists)
    assert f"topic_id: {open_log(topic.name).topic_id()}" in written.read_text()


def test_a_missing_topic_is_named(open_log: OpenLog) -> None:
    name = fresh_topic()
    log = open_log(name)
    with pytest.raises(LogUnreachable, match="no broker leads it"):
        answered(log.request_ends())
    for ask in (log.topic_id, log.ends, lambda: log.offset_at(0)):
        with pytest.raises(TopicUnfit, match=f"no topic {name}"):
            ask()


def test_a_missing_partition_is_named(topic: TemporaryTopic, open_log: OpenLog) -> None:
    log = open_log(topic.name, 7)
    with pytest.raises(LogUnreachable, match="no broker leads it"):
        answered(log.request_ends())
    for ask in (log.topic_id, log.ends, lambda: log.offset_at(0)):
        with pytest.raises(TopicUnfit, match=f"{topic.name} has no partition 7: it has 1"):
            ask()


def test_the_deletion_of_a_topic_is_noticed_while_it_is_read(topic: TemporaryTopic, open_log: OpenLog) -> None:
    topic.append(b"value")
    log = open_log(topic.name, gone_after=1.5)
    log.seek(0)
    assert offsets(read_on(log)) == [0]
    topic.admin.delete_topics([topic.name])[topic.name].result(TIMEOUT)
    unreachable = 0

    def ends() -> bool:
        nonlocal unreachable
        try:
            log.poll(1, 0.1)
        except LogUnreachable:
            unreachable += 1
        return False

    with pytest.raises(TopicUnfit, match=f"no topic {topic.name}"):
        eventually(ends)
    assert unreachable, "until it counts as deleted, it is unreachable"


def test_several_shards_mirror_into_one_group(topic: TemporaryTopic, open_log: OpenLog) -> None:
    """None is a member of the group, so none is removed from it."""
    topic.append(b"value")
    first, second = open_log(topic.name), open_log(topic.name)
    first.seek(0)
    second.seek(0)
    first.mirror(1)
    second.mirror(1)
    assert len(read_on(first)) == len(read_on(second)) == 1


def test_options_that_operators_may_not_change_are_kept(topic: TemporaryTopic, open_log: OpenLog) -> None:
    transaction = topic.begin()
    transaction.append(b"never")
    log = open_log(topic.name, **{"isolation.level": "read_uncommitted", "auto.offset.reset": "earliest"})
    log.seek(0)
    assert len(log.poll(10, 0.3)) == 0
    transaction.abort()


def test_reading_a_closed_log_is_an_error(topic: TemporaryTopic, open_log: OpenLog) -> None:
    log = open_log(topic.name)
    log.seek(0)
    log.close()
    with pytest.raises(RuntimeError, match="closed"):
        log.poll(1, 0)


def test_a_log_may_be_closed_and_dropped_while_an_offset_is_being_mirrored(topic: TemporaryTopic, stack: Stack) -> None:
    """A client that is destroyed by one of its own threads crashes the whole process."""
    client = {"bootstrap.servers": stack.kafka_bootstrap}
    for number in range(100):
        log = KafkaLog(client, dataset="system", topic=topic.name, partition=0)
        log.mirror(0)
        if number % 2:
            log.close()
        del log


def test_an_unknown_host_is_unreachable(topic: TemporaryTopic, open_log: OpenLog) -> None:
    log = open_log(topic.name, **{"bootstrap.servers": "no-such-host.invalid:9092", "socket.timeout.ms": 500})
    log.seek(0)
    with pytest.raises(LogUnreachable):
        log.poll(1, 0.5)
