"""Topics of a real Kafka, and operations of others on them."""

import socket
import uuid
from collections.abc import Callable, Mapping

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from confluent_kafka.cimpl import NewTopic

from strandline.clock import SystemClock, wait_until
from strandline.wire.record_headers import CHECKED_HEADERS

# After a broker was frozen, it may take minutes on a busy machine until its controller accepts it again.
TIMEOUT = 240.0
PRODUCERS_TIMES = {"message.timestamp.type": "CreateTime", "retention.ms": "-1"}
"""Record times from the producer, however old: with a retention by time, old records would be deleted immediately."""


# Errors of a broker, or its client, that was suspended and that its controller has not accepted again yet.
_NOT_YET = {
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.NOT_CONTROLLER,
    KafkaError.BROKER_NOT_AVAILABLE,
}


def fresh_topic() -> str:
    return f"test-{uuid.uuid4().hex}"


def unused_address() -> str:
    """An address at which no process listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def eventually(condition: Callable[[], bool]) -> None:
    assert wait_until(condition, timeout=TIMEOUT, clock=SystemClock(), poll=0.01)


class TemporaryTopic:
    """A topic with one partition, and operations on it."""

    def __init__(self, client: Mapping[str, str], settings: Mapping[str, str] = PRODUCERS_TIMES) -> None:
        self.name = fresh_topic()
        # Quiet, because the producers of earlier tests outlive the server.
        self.client = {**client, "log_level": 0}
        self.settings = dict(settings)
        self.admin = AdminClient(self.client)
        self.make()
        self._producer = Producer({**self.client, "linger.ms": 0})

    def make(self) -> None:
        new = NewTopic(self.name, num_partitions=1, replication_factor=1, config=self.settings)
        tries = 0

        def is_made() -> bool:
            nonlocal tries
            tries += 1
            # With a separate client: one whose request a broker has lost may wait for it long after others are served.
            admin = AdminClient(self.client)
            try:
                admin.create_topics([new], request_timeout=10)[self.name].result(20)
            except TimeoutError:
                return False
            except KafkaException as error:
                code = error.args[0].code()
                if code in _NOT_YET:
                    return False
                # Created by a request whose answer was lost.
                if tries > 1 and code == KafkaError.TOPIC_ALREADY_EXISTS:
                    return True
                raise
            return True

        eventually(is_made)
        # The broker has its metadata a moment later.
        eventually(self._known)

    def recreate(self) -> None:
        self.admin.delete_topics([self.name])[self.name].result(TIMEOUT)
        self.make()
        # The old producer has metadata of the old topic.
        self._producer = Producer({**self.client, "linger.ms": 0})

    def append(self, value: bytes, time: int = 0, *, times_checked: bool = False) -> int:
        return produce(self._producer, self.name, value, time, times_checked=times_checked)

    def begin(self) -> "TopicTransaction":
        return TopicTransaction(self)

    def delete_before(self, offset: int) -> None:
        place = TopicPartition(self.name, 0, offset)
        self.admin.delete_records([place])[place].result(TIMEOUT)

    def high(self) -> int:
        place = TopicPartition(self.name, 0)
        wanted = {place: OffsetSpec.latest()}
        answers = self.admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_UNCOMMITTED)
        return answers[place].result(TIMEOUT).offset

    def _known(self) -> bool:
        try:
            self.admin.describe_topics(TopicCollection([self.name]))[self.name].result(TIMEOUT)
        except KafkaException:
            return False
        return True


class TopicTransaction:
    """A transaction. `commit` and `abort` return once its marker is in the log, which the library does not wait for."""

    def __init__(self, topic: TemporaryTopic) -> None:
        self._topic = topic
        config = {**topic.client, "transactional.id": uuid.uuid4().hex, "linger.ms": 0}
        self._producer = Producer(config)
        self._producer.init_transactions(TIMEOUT)
        self._producer.begin_transaction()

    def append(self, value: bytes, time: int = 0, *, times_checked: bool = False) -> int:
        return produce(self._producer, self._topic.name, value, time, times_checked=times_checked)

    def commit(self) -> None:
        self._end(self._producer.commit_transaction)

    def abort(self) -> None:
        self._end(self._producer.abort_transaction)

    def _end(self, end: Callable[[float], None]) -> None:
        before = self._topic.high()
        end(TIMEOUT)
        eventually(lambda: self._topic.high() == before + 1)


def produce(producer: Producer, topic: str, value: bytes, time: int, *, times_checked: bool = False) -> int:
    """Returns the record's offset once the broker has acknowledged it."""
    offsets: list[int] = []

    def delivered(error: object, message: object) -> None:
        assert error is None, error
        offsets.append(message.offset())

    headers = list(CHECKED_HEADERS) if times_checked else None
    producer.produce(topic, value=value, partition=0, timestamp=time, headers=headers, on_delivery=delivered)
    assert producer.flush(TIMEOUT) == 0
    return offsets[0]
