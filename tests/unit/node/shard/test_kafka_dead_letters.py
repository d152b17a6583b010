"""Dead letters while no broker accepts them."""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException

from strandline.node.shard.kafka_dead_letters import DeadLetterCounts, KafkaDeadLetters
from support.real_kafka import unused_address

pytestmark = pytest.mark.unit


@pytest.fixture
def letters() -> Iterator[KafkaDeadLetters]:
    """No broker answers, and the queue has space for five letters."""
    letters = KafkaDeadLetters({"bootstrap.servers": unused_address(), "queue.buffering.max.messages": 5}, "metrics")
    yield letters
    letters.close(0)


def send(letters: KafkaDeadLetters, count: int) -> None:
    for offset in range(count):
        letters.send(shard=2, offset=offset, time=0, reason="not snappy", value=b"garbage")


def test_dead_letters_wait_for_the_brokers(letters: KafkaDeadLetters) -> None:
    send(letters, 5)
    assert letters.counts() == DeadLetterCounts(sent=5, delivered=0, lost=0)


def test_a_full_queue_loses_dead_letters_and_never_blocks(
    letters: KafkaDeadLetters, caplog: pytest.LogCaptureFixture
) -> None:
    begun = time.monotonic()
    send(letters, 1000)
    assert time.monotonic() - begun < 60
    assert letters.counts() == DeadLetterCounts(sent=1000, delivered=0, lost=995)
    assert (
        "the dead letter of partition 2 of topic metrics, offset 5 (not snappy) is lost: the queue is full"
        in caplog.messages
    )


def test_dead_letters_undelivered_at_the_end_are_lost_and_their_offsets_logged(
    letters: KafkaDeadLetters, caplog: pytest.LogCaptureFixture
) -> None:
    send(letters, 3)
    letters.close(0.05)
    assert letters.counts() == DeadLetterCounts(sent=3, delivered=0, lost=3)
    places = [message for message in caplog.messages if "is lost" in message]
    assert [message.split(" is lost")[0] for message in places] == [
        f"the dead letter of partition 2 of topic metrics, offset {offset} (not snappy)" for offset in range(3)
    ]


def test_dead_letters_over_the_queues_limit_in_bytes_are_lost(letters: KafkaDeadLetters) -> None:
    letters.send(shard=0, offset=0, time=0, reason="why", value=bytes(9 << 20))
    letters.send(shard=0, offset=1, time=0, reason="why", value=bytes(9 << 20))
    assert letters.counts().lost == 1


class FatalProducer:
    """Raises an error that is fatal for the client when its queue is served, as the library does."""

    def poll(self, _timeout: float) -> int:
        raise KafkaException(KafkaError(KafkaError._FATAL, "no right to write", fatal=True))

    flush = poll

    def produce(self, *_: object, **__: object) -> None:
        self.poll(0)

    def purge(self) -> None:
        pass

    def __len__(self) -> int:
        return 1


def test_a_client_with_a_fatal_error_loses_dead_letters_and_stops_nothing(letters: KafkaDeadLetters) -> None:
    letters._producer = FatalProducer()  # type: ignore[assignment]
    send(letters, 2)
    assert letters.counts() == DeadLetterCounts(sent=2, delivered=0, lost=2)
    letters.wait(0)
