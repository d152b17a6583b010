"""How the part log handles errors of its clients. The contract tests it with real brokers."""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from strandline.clock import ManualClock
from strandline.jobs.landing import kafka_group, kafka_part_log
from strandline.jobs.landing.kafka_part_log import KafkaTransactions, producer_options, shared_part_logs
from strandline.jobs.landing.kafka_part_log import kafka_part_log as open_part_log
from strandline.jobs.landing.packing import PackedRecord
from strandline.jobs.landing.part_log import PartLog
from strandline.jobs.landing.progress import Landed, PartIdentity, Progress
from strandline.jobs.landing.transactions import (
    CommittedOffset,
    LandingUnknown,
    OffsetUnstable,
    PartFenced,
    RecordsRefused,
)
from strandline.kafka.errors import KafkaFailed, KafkaRefused, LogUnreachable

pytestmark = pytest.mark.unit

PART = PartIdentity("metrics", "import-1", 3)
RECORD = PackedRecord(0, b"value", 1, 1)


def answered(value: object) -> "Future[Any]":
    answer: Future[Any] = Future()
    if isinstance(value, Exception):
        answer.set_exception(value)
    else:
        answer.set_result(value)
    return answer


class Clients:
    """All clients of the library in one. `failures` are the errors by name of the call."""

    def __init__(self) -> None:
        self.failures: dict[str, KafkaError] = {}
        self.calls: list[str] = []
        self.made: list[type] = []
        self.unacknowledged = 0
        self.offset = TopicPartition("topic", 0, -1001)
        self.offset_request: dict[str, object] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*_arguments: object, **_options: object) -> Any:
            self.calls.append(name)
            if name in self.failures:
                raise KafkaException(self.failures[name])

        return call

    def __exit__(self, *_raised: object) -> None:
        self.calls.append("closed")

    def flush(self, _timeout: float) -> int:
        return self.unacknowledged

    def describe_topics(self, *_arguments: object, **_options: object) -> dict[str, "Future[Any]"]:
        return {"topic": answered(None)}

    def list_consumer_group_offsets(self, _wanted: object, **options: object) -> dict[str, "Future[Any]"]:
        self.offset_request = options
        return {PART.name: answered(SimpleNamespace(topic_partitions=[self.offset]))}


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Clients:
    clients = Clients()

    def make(kind: type, _options: object) -> Clients:
        assert kind in {Producer, Consumer, AdminClient}
        clients.made.append(kind)
        return clients

    monkeypatch.setattr(kafka_part_log, "create_client", make)
    monkeypatch.setattr(kafka_group, "create_client", make)
    return clients


@pytest.fixture
def log(clients: Clients) -> PartLog:
    log = open_part_log({}, "topic", ManualClock())
    assert log.begin(PART, first_begun_ms=None, deadline=100) == Landed()
    clients.calls.clear()
    return log


def land(log: PartLog) -> None:
    log.land(0, [RECORD], Progress(), deadline=100)


def test_no_setting_lets_a_record_outlive_its_transaction_or_be_doubled() -> None:
    chosen = {
        "acks": "1",
        "enable.idempotence": False,
        "transaction.timeout.ms": 900_000,
        "message.timeout.ms": 900_000,
        "transactional.id": "shared",
        "socket.timeout.ms": 5_000,
    }
    options = producer_options(chosen, PART)
    assert (options["acks"], options["enable.idempotence"]) == ("all", True)
    assert options["transaction.timeout.ms"] == options["message.timeout.ms"] == 10_000
    assert options["transactional.id"] == "metrics.import-1.3"
    assert options["socket.timeout.ms"] == 5_000


def test_a_chunk_is_one_transaction(log: PartLog, clients: Clients) -> None:
    land(log)
    assert clients.calls == [
        # Before the transaction, which must be short.
        "consumer_group_metadata",
        "close",
        "begin_transaction",
        "produce",
        "send_offsets_to_transaction",
        "commit_transaction",
    ]


def test_logs_that_are_opened_together_share_all_but_the_producer(clients: Clients) -> None:
    with shared_part_logs({}, "topic", ManualClock()) as open_log:
        for _ in range(3):
            with closing(open_log()) as log:
                log.begin(PART, first_begun_ms=None, deadline=100)
        assert "closed" not in clients.calls
    assert clients.made == [AdminClient, Producer, Producer, Producer]
    assert clients.calls.count("init_transactions") == 3
    assert clients.calls.count("closed") == 1


@pytest.mark.parametrize("step", ["produce", "send_offsets_to_transaction", "commit_transaction"])
@pytest.mark.parametrize("code", [KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED])
def test_a_holder_that_was_fenced_has_lost_the_part_and_aborts_nothing(
    log: PartLog, clients: Clients, step: str, code: int
) -> None:
    clients.failures[step] = KafkaError(code, "fenced", True)
    with pytest.raises(PartFenced, match="another holder, or a transaction took longer than 10 s"):
        land(log)
    assert "abort_transaction" not in clients.calls
    assert log.held is None


@pytest.mark.parametrize(
    "error",
    [
        KafkaError(KafkaError._TIMED_OUT, "no answer", False, True),
        KafkaError(KafkaError._STATE, "whatever"),
        KafkaError(KafkaError._FATAL, "whatever", True),
    ],
)
def test_a_commit_without_a_clear_answer_may_have_landed_and_is_not_aborted(
    log: PartLog, clients: Clients, error: KafkaError
) -> None:
    clients.failures["commit_transaction"] = error
    with pytest.raises(LandingUnknown):
        land(log)
    assert "abort_transaction" not in clients.calls
    assert log.held is None


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, RecordsRefused),
        (KafkaError._MSG_TIMED_OUT, LogUnreachable),
        (KafkaError._INVALID_ARG, KafkaFailed),
        (KafkaError.NOT_ENOUGH_REPLICAS, LogUnreachable),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaRefused),
    ],
)
def test_a_record_that_was_not_delivered_aborts_the_transaction(
    log: PartLog, clients: Clients, code: int, kind: type[Exception]
) -> None:
    clients.failures["commit_transaction"] = KafkaError(code, "not delivered", False, False, True)
    with pytest.raises(kind):
        land(log)
    assert clients.calls[-1] == "abort_transaction"


def test_records_that_are_not_acknowledged_in_time_abort_the_transaction(log: PartLog, clients: Clients) -> None:
    clients.unacknowledged = 1
    with pytest.raises(LogUnreachable, match="1 of 1 were not acknowledged"):
        land(log)
    assert clients.calls[-3:] == ["begin_transaction", "produce", "abort_transaction"]


def test_the_cause_is_raised_if_the_abort_fails_as_well(log: PartLog, clients: Clients) -> None:
    clients.unacknowledged = 1
    clients.failures["abort_transaction"] = KafkaError(KafkaError._TIMED_OUT, "no answer")
    with pytest.raises(LogUnreachable, match="not acknowledged"):
        land(log)


def test_brokers_that_do_not_permit_the_timeout_are_not_retried(clients: Clients) -> None:
    clients.failures["init_transactions"] = KafkaError(KafkaError.INVALID_TRANSACTION_TIMEOUT, "too long", True)
    with pytest.raises(KafkaFailed) as caught:
        open_part_log({}, "topic", ManualClock()).begin(PART, first_begun_ms=None, deadline=100)
    assert "transaction.max.timeout.ms" in caught.value.remedy


def test_only_a_stable_offset_is_read(clients: Clients) -> None:
    transactions = KafkaTransactions({}, "topic", ManualClock())
    clients.offset = TopicPartition("topic", 0, 4, "1 4 0")
    assert transactions.committed(PART, 5) == CommittedOffset(4, "1 4 0")
    assert clients.offset_request["require_stable"] is True
    clients.offset = SimpleNamespace(offset=-1001, error=KafkaError(KafkaError.UNSTABLE_OFFSET_COMMIT))
    with pytest.raises(OffsetUnstable):
        transactions.committed(PART, 5)


def test_an_offset_that_can_not_be_read_is_not_taken_for_none(clients: Clients) -> None:
    transactions = KafkaTransactions({}, "topic", ManualClock())
    clients.offset = SimpleNamespace(offset=-1001, error=KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaRefused, match=r"metrics\.import-1\.3"):
        transactions.committed(PART, 5)


@pytest.mark.parametrize(("chosen", "used"), [(30_000, 10_000), (4_000, 4_000), (None, 10_000)])
def test_no_request_waits_for_longer_than_a_transaction_lasts(chosen: int | None, used: int) -> None:
    options = {} if chosen is None else {"socket.timeout.ms": chosen}
    made = producer_options(options, PART)
    assert made["socket.timeout.ms"] == used
    # The library has it.
    Producer({**made, "bootstrap.servers": "127.0.0.1:1"})
