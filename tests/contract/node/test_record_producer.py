"""What holds for every `RecordProducer`: Kafka's, and the one in memory."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Protocol

import pytest

from strandline.clock import SystemClock
from strandline.node.gateway.broker_clock import BrokerClock
from strandline.node.gateway.kafka_producer import Bounds, KafkaProducer, client_factory
from strandline.node.gateway.producer import NotDelivered, Record, RecordProducer
from strandline.node.shard.kafka_log import KafkaLog
from strandline.node.stack import Stack
from support.gateway_topics import GatewayTopic
from support.gateways import Deliveries, FakeProducer
from support.partition_logs import read_on
from support.real_kafka import eventually

pytestmark = pytest.mark.contract

PARTITIONS = 3
HOUR = 3_600_000


class SetClock(SystemClock):
    """A clock that is wrong by this many milliseconds."""

    wrong_by = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.wrong_by


class World(Protocol):
    """A producer and its topic."""

    producer: RecordProducer
    clock: "SetClock"
    broker_clock: BrokerClock

    def grow(self, partitions: int) -> None: ...

    def read(self) -> dict[int, list[bytes]]: ...


class MemoryWorld:
    def __init__(self) -> None:
        self.clock = SetClock()
        self.broker_clock = BrokerClock(self.clock)
        self.producer = FakeProducer(PARTITIONS, self.broker_clock)

    def grow(self, partitions: int) -> None:
        self.producer.partitions = partitions

    def read(self) -> dict[int, list[bytes]]:
        return {number: list(self.producer.log[number]) for number in range(self.producer.partitions)}


class KafkaWorld:
    def __init__(self, bootstrap: str) -> None:
        self.topic = GatewayTopic(bootstrap, PARTITIONS)
        self.clock = SetClock()
        self.broker_clock = BrokerClock(self.clock)
        make = client_factory(self.topic.client, Bounds(20, 64 << 20, 1_000_000))
        self.producer = KafkaProducer(make, self.topic.name, self.broker_clock)

    def grow(self, partitions: int) -> None:
        self.topic.grow(partitions)

    def read(self) -> dict[int, list[bytes]]:
        return self.topic.read()


@contextmanager
def memory_world(_request: pytest.FixtureRequest) -> Iterator[World]:
    yield MemoryWorld()


@contextmanager
def kafka_world(request: pytest.FixtureRequest) -> Iterator[World]:
    with closing_world(request.getfixturevalue("stack")) as world:
        yield world


@contextmanager
def closing_world(stack: Stack) -> Iterator[KafkaWorld]:
    world = KafkaWorld(stack.kafka_bootstrap)
    try:
        yield world
    finally:
        world.producer.close(0)


@pytest.fixture(params=[memory_world, kafka_world], ids=["memory", "kafka"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with request.param(request) as made:
        yield made


@pytest.fixture
def deliveries() -> Deliveries:
    return Deliveries()


def test_each_record_is_in_its_partition_once_the_batch_is_reported(world: World, deliveries: Deliveries) -> None:
    world.producer.send([Record(2, b"c"), Record(0, b"a"), Record(2, b"d")], deliveries.on_done())
    assert deliveries.wait(1) == [None]
    assert world.read() == {0: [b"a"], 1: [], 2: [b"c", b"d"]}


@pytest.mark.parametrize("wrong_by", [0, -HOUR, HOUR])
def test_a_delivery_compares_the_brokers_clock_with_the_local_one(
    world: World, deliveries: Deliveries, wrong_by: int
) -> None:
    world.clock.wrong_by = wrong_by
    assert not world.broker_clock.is_compared(world.broker_clock.now())
    world.producer.send([Record(0, b"a")], deliveries.on_done())
    assert deliveries.wait(1) == [None]
    assert world.broker_clock.is_compared(world.broker_clock.now())
    newest = world.broker_clock.newest
    assert newest is not None
    assert newest.disagrees is (wrong_by != 0)
    assert newest.difference_ms == pytest.approx(-wrong_by, abs=HOUR // 10)


def test_a_reader_sees_that_the_times_of_samples_were_checked(stack: Stack, deliveries: Deliveries) -> None:
    with closing_world(stack) as world:
        world.producer.send([Record(0, b"a"), Record(0, b"b")], deliveries.on_done())
        assert deliveries.wait(1) == [None]
        with closing(KafkaLog(world.topic.client, dataset="marks", topic=world.topic.name, partition=0)) as log:
            log.seek(0)
            assert [mark for records in read_on(log) for mark in records.times_checked.tolist()] == [True, True]


def test_batches_of_one_thread_keep_their_order_within_a_partition(world: World, deliveries: Deliveries) -> None:
    for number in range(50):
        world.producer.send([Record(1, b"%d" % number)], deliveries.on_done())
    assert deliveries.wait(50) == [None] * 50
    assert world.read()[1] == [b"%d" % number for number in range(50)]


def test_a_missing_partition_fails_its_batch_and_no_other(world: World, deliveries: Deliveries) -> None:
    world.producer.send([Record(0, b"a")], deliveries.on_done())
    assert deliveries.wait(1) == [None]
    world.producer.send([Record(PARTITIONS, b"x")], deliveries.on_done())
    assert isinstance(deliveries.wait(2)[1], NotDelivered)
    world.producer.send([Record(1, b"b")], deliveries.on_done())
    assert deliveries.wait(3)[2] is None


def test_added_partitions_can_be_awaited_and_then_used(world: World, deliveries: Deliveries) -> None:
    world.producer.await_partitions(PARTITIONS)
    with pytest.raises(NotDelivered):
        world.producer.await_partitions(PARTITIONS + 2)
    world.grow(PARTITIONS + 2)
    eventually(lambda: has_partitions(world, PARTITIONS + 2))
    world.producer.send([Record(PARTITIONS + 1, b"new")], deliveries.on_done())
    assert deliveries.wait(1) == [None]
    assert world.read()[PARTITIONS + 1] == [b"new"]


def has_partitions(world: World, partitions: int) -> bool:
    try:
        world.producer.await_partitions(partitions)
    except NotDelivered:
        return False
    return True


def test_many_threads_may_send(world: World, deliveries: Deliveries) -> None:
    def send(first: int) -> None:
        for number in range(first, first + 25):
            world.producer.send([Record(at, b"%d" % number) for at in range(PARTITIONS)], deliveries.on_done())

    threads = [threading.Thread(target=send, args=(1000 * each,)) for each in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert deliveries.wait(100) == [None] * 100
    assert [len(values) for values in world.read().values()] == [100] * PARTITIONS


def test_closing_delivers_queued_records_and_accepts_no_more(world: World, deliveries: Deliveries) -> None:
    world.producer.send([Record(0, b"before")], deliveries.on_done())
    world.producer.close(20)
    assert deliveries.wait(1) == [None]
    world.producer.send([Record(0, b"after")], deliveries.on_done())
    assert isinstance(deliveries.wait(2)[1], NotDelivered)
    assert world.read()[0] == [b"before"]


def test_a_renewed_producer_works(world: World, deliveries: Deliveries) -> None:
    world.producer.renew()
    eventually(lambda: world.producer.counts().renewals == 1)
    world.producer.send([Record(0, b"after")], deliveries.on_done())
    assert deliveries.wait(1) == [None]
