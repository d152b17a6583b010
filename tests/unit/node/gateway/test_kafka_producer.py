"""How the producer handles errors of its client. The contract tests run it with real brokers."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, KafkaError, KafkaException

from strandline.clock import ManualClock
from strandline.kafka.errors import KafkaFailed
from strandline.node.gateway import kafka_producer
from strandline.node.gateway.broker_clock import BrokerClock, Comparison, OwnTime
from strandline.node.gateway.kafka_producer import Bounds, KafkaProducer, client_factory
from strandline.node.gateway.producer import NotDelivered, Record
from support.gateways import Deliveries
from support.real_kafka import eventually

pytestmark = pytest.mark.unit

OnDelivery = Callable[[KafkaError | None, object], None]


@dataclass
class ScriptedClient:
    """A client that the test controls. Like the library, it reports deliveries only when it is polled."""

    on_error: Callable[[KafkaError], None]
    on_statistics: Callable[[str], None]
    outcome: KafkaError | None = None
    refusal: Exception | None = None
    refuse_after: int = 10**9
    waiting: list[OnDelivery] = field(default_factory=list)
    events: list[Callable[[], None]] = field(default_factory=list)
    holding: bool = False
    timestamp: tuple[int, int] = (TIMESTAMP_LOG_APPEND_TIME, 0)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def produce(self, topic: str, *, value: bytes, partition: int, headers: object, on_delivery: OnDelivery) -> None:
        assert (topic, value, partition) == ("topic", b"value", partition)
        assert headers == [("strandline-times", b"checked")]
        if self.refuse_after <= 0 and self.refusal is not None:
            raise self.refusal
        self.refuse_after -= 1
        with self.lock:
            self.waiting.append(on_delivery)

    def poll(self, _timeout: float) -> int:
        with self.lock:
            delivered = [] if self.holding else self.waiting
            self.waiting = self.waiting if self.holding else []
            events, self.events = self.events, []
        for event in events:
            event()
        for on_delivery in delivered:
            on_delivery(self.outcome, SimpleNamespace(timestamp=lambda: self.timestamp))
        threading.Event().wait(0.001)
        return len(delivered)

    def flush(self, timeout: float) -> int:
        self.poll(timeout)
        return len(self)

    def purge(self) -> None:
        self.holding, self.outcome = False, KafkaError(KafkaError._PURGE_QUEUE)

    def list_topics(self, topic: str, timeout: float) -> SimpleNamespace:
        assert timeout > 0
        if self.refusal is not None:
            raise self.refusal
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions={0: None, 1: None})})

    def __len__(self) -> int:
        return len(self.waiting)


class ScriptedProducer:
    """A producer with clients that the test controls."""

    def __init__(self, **script: object) -> None:
        self.clients: list[ScriptedClient] = []
        self.outages = 0
        self._script = script
        self.clock = ManualClock(NOW)
        self.broker_clock = BrokerClock(self.clock)
        self.producer = KafkaProducer(self._make_client, "topic", self.broker_clock, on_trouble=self._count_outage)
        self.deliveries = Deliveries()

    def _make_client(
        self, on_error: Callable[[KafkaError], None], on_statistics: Callable[[str], None]
    ) -> ScriptedClient:
        script = self._script if not self.clients else {}
        self.clients.append(ScriptedClient(on_error, on_statistics, **script))
        return self.clients[-1]

    def _count_outage(self) -> None:
        self.outages += 1

    def send(self, records: int = 3) -> None:
        batch = [Record(number % 2, b"value") for number in range(records)]
        self.producer.send(batch, self.deliveries.on_done())

    def results(self, count: int = 1) -> list[NotDelivered | None]:
        return self.deliveries.wait(count)


NOW = 1_790_000_000_000
FATAL = KafkaError(KafkaError._FATAL, "out of sequence", fatal=True)


def test_a_batch_is_reported_once_when_its_last_record_is_acknowledged() -> None:
    scripted = ScriptedProducer(holding=True)
    scripted.send(5)
    scripted.clients[0].holding = False
    assert scripted.results() == [None]
    scripted.producer.close(1)
    assert scripted.results() == [None]


@pytest.mark.parametrize(
    ("timestamp", "difference"),
    [
        ((TIMESTAMP_LOG_APPEND_TIME, NOW + 5_000), 0),
        ((TIMESTAMP_LOG_APPEND_TIME, NOW + 910_000), 900_000),
        ((TIMESTAMP_LOG_APPEND_TIME, NOW - 900_000), -900_000),
        ((TIMESTAMP_CREATE_TIME, NOW - 900_000), None),
    ],
)
def test_the_time_of_an_acknowledged_record_is_compared_with_the_gateways_clock(
    timestamp: tuple[int, int], difference: int | None
) -> None:
    scripted = ScriptedProducer(holding=True, timestamp=timestamp)
    scripted.send(1)
    scripted.clock.sleep(10)
    scripted.clients[0].holding = False
    scripted.results()
    assert scripted.broker_clock.newest == Comparison(difference, OwnTime(NOW + 10_000, 10.0))
    scripted.producer.close(1)


def test_a_failed_record_makes_no_clock_comparison() -> None:
    scripted = ScriptedProducer(outcome=KafkaError(KafkaError._MSG_TIMED_OUT))
    scripted.send()
    scripted.results()
    assert scripted.broker_clock.newest is None
    scripted.producer.close(1)


def test_one_failed_record_fails_its_batch() -> None:
    scripted = ScriptedProducer(outcome=KafkaError(KafkaError._MSG_TIMED_OUT))
    scripted.send()
    (error,) = scripted.results()
    assert "timed out" in str(error).lower()
    assert scripted.producer.counts().errors == 3
    scripted.producer.close(1)


def test_a_full_queue_fails_the_batch_after_its_queued_records_are_settled() -> None:
    scripted = ScriptedProducer(refusal=BufferError(), refuse_after=2, holding=True)
    scripted.send(4)
    assert scripted.deliveries.outcomes == []
    scripted.clients[0].holding = False
    (error,) = scripted.results()
    assert "the producer's queue is full" in str(error)
    scripted.producer.close(1)


def test_a_client_that_refuses_the_first_record_fails_the_batch_at_once() -> None:
    scripted = ScriptedProducer(refusal=KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION)), refuse_after=0)
    scripted.send()
    assert len(scripted.results()) == 1
    scripted.producer.close(1)


@pytest.mark.parametrize("how", ["delivery", "refusal", "callback"])
def test_a_fatal_error_of_the_client_leads_to_a_new_client(how: str) -> None:
    match how:
        case "delivery":
            scripted = ScriptedProducer(outcome=FATAL)
        case "refusal":
            scripted = ScriptedProducer(refusal=KafkaException(FATAL), refuse_after=0)
        case _:
            scripted = ScriptedProducer()
            client = scripted.clients[0]
            client.events.append(lambda: client.on_error(FATAL))
    if how != "callback":
        scripted.send()
        assert isinstance(scripted.results()[0], NotDelivered)
    eventually(lambda: scripted.producer.counts().renewals == 1)
    before = len(scripted.deliveries.outcomes)
    scripted.send()
    assert scripted.results(before + 1)[-1] is None
    assert len(scripted.clients) == 2
    scripted.producer.close(1)


def test_unacknowledged_records_of_the_old_client_are_reported_as_failed() -> None:
    scripted = ScriptedProducer(holding=True)
    scripted.send()
    scripted.producer.renew()
    (error,) = scripted.results()
    assert isinstance(error, NotDelivered)
    scripted.producer.close(1)


def test_closing_waits_for_deliveries_and_then_fails_the_others() -> None:
    scripted = ScriptedProducer(holding=True)
    scripted.send()
    scripted.producer.close(0)
    (error,) = scripted.results()
    assert isinstance(error, NotDelivered)


def test_an_outage_of_all_brokers_is_reported_to_the_callback() -> None:
    scripted = ScriptedProducer()
    client = scripted.clients[0]
    client.events.append(lambda: client.on_error(KafkaError(KafkaError._ALL_BROKERS_DOWN)))
    eventually(lambda: scripted.outages == 1)
    scripted.producer.close(1)


def test_retries_are_the_sum_over_all_brokers_and_previous_clients() -> None:
    scripted = ScriptedProducer()
    statistics = json.dumps({"brokers": {"a": {"txretries": 2}, "b": {"txretries": 3}}})
    scripted.clients[0].on_statistics(statistics)
    assert scripted.producer.counts().retries == 5
    scripted.producer.renew()
    eventually(lambda: scripted.producer.counts().renewals == 1)
    scripted.clients[1].on_statistics(statistics)
    assert scripted.producer.counts().retries == 10
    scripted.producer.close(1)


def test_awaiting_unknown_partitions_fails() -> None:
    scripted = ScriptedProducer()
    scripted.producer.await_partitions(2)
    with pytest.raises(NotDelivered, match="not 3"):
        scripted.producer.await_partitions(3)
    scripted.clients[0].refusal = KafkaException(KafkaError(KafkaError._TRANSPORT))
    with pytest.raises(NotDelivered):
        scripted.producer.await_partitions(2)
    scripted.producer.close(1)


def test_options_that_the_library_rejects_raise_an_error_at_once() -> None:
    make = client_factory({"bootstrap.servers": "127.0.0.1:1", "no.such.property": 1}, Bounds(20, 1 << 20, 900_000))
    with pytest.raises(KafkaFailed, match=r"no\.such\.property"):
        KafkaProducer(make, "topic", BrokerClock(ManualClock()))


def test_acks_and_idempotence_can_not_be_overridden_by_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    created: list[dict[str, object]] = []
    monkeypatch.setattr(kafka_producer, "create_client", lambda _kind, options: created.append(options))
    overridden = {"bootstrap.servers": "127.0.0.1:1", "acks": "1", "enable.idempotence": False}
    client_factory(overridden, Bounds(20, 1 << 20, 900_000))(lambda _: None, lambda _: None)
    assert (created[0]["acks"], created[0]["enable.idempotence"]) == ("all", True)


def test_the_largest_bounds_are_within_the_librarys_limits() -> None:
    make = client_factory({"bootstrap.servers": "127.0.0.1:1"}, Bounds(600, 64 << 30, 80 << 20))
    make(lambda _: None, lambda _: None)


def test_an_exception_while_polling_ends_the_client_and_not_the_thread() -> None:
    def fail() -> None:
        raise KafkaException(FATAL)

    scripted = ScriptedProducer(holding=True)
    scripted.send()
    with scripted.clients[0].lock:
        scripted.clients[0].events.append(fail)
    eventually(lambda: scripted.producer.counts().renewals == 1)
    assert isinstance(scripted.results()[0], NotDelivered), "the client's records have failed"
    scripted.send()
    assert scripted.results(2)[1] is None, "the next client delivers"
