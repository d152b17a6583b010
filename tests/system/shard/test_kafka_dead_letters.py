"""Dead letters in a real topic."""

import pytest
from confluent_kafka import Consumer, TopicPartition

from strandline.node.shard.kafka_dead_letters import DeadLetterCounts, KafkaDeadLetters
from strandline.node.shard.kafka_topics import create_dead_topic, create_topic, dead_topic
from strandline.node.stack import Stack
from support.real_kafka import TIMEOUT, eventually, fresh_topic

pytestmark = pytest.mark.system


@pytest.fixture
def client(stack: Stack) -> dict[str, str | int | bool]:
    return {"bootstrap.servers": stack.kafka_bootstrap}


@pytest.fixture
def topic(client: dict[str, str | int | bool]) -> str:
    name = fresh_topic()
    create_topic(client, name, partitions=1, replication=1, retention_ms=None)
    create_dead_topic(client, name, replication=1, retention_ms=86_400_000)
    return name


def test_a_letter_has_the_original_value_the_reason_and_the_source(
    client: dict[str, str | int | bool], topic: str
) -> None:
    letters = KafkaDeadLetters(client, topic)
    value = bytes(range(256))
    letters.send(shard=3, offset=4_294_967_299, time=1_000, reason="not snappy: größer", value=value)
    letters.close(TIMEOUT)
    assert letters.counts() == DeadLetterCounts(sent=1, delivered=1, lost=0)

    consumer = Consumer({**client, "group.id": "dead-letters", "auto.offset.reset": "error"})
    consumer.assign([TopicPartition(dead_topic(topic), 0, 0)])
    message = consumer.poll(TIMEOUT)
    consumer.close()
    assert message.value() == value
    assert {name: text.decode() for name, text in message.headers()} == {
        "strandline-reason": "not snappy: größer",
        "strandline-topic": topic,
        "strandline-partition": "3",
        "strandline-offset": "4294967299",
        "strandline-time": "1000",
    }


def test_letters_of_old_records_are_kept_as_long_as_others(client: dict[str, str | int | bool], topic: str) -> None:
    """They have the time at which they were written: with their record's time, Kafka would delete them immediately."""
    letters = KafkaDeadLetters(client, topic)
    letters.send(shard=0, offset=0, time=1_000, reason="why", value=b"value")
    letters.close(TIMEOUT)
    consumer = Consumer({**client, "group.id": "dead-letters", "auto.offset.reset": "error"})
    consumer.assign([TopicPartition(dead_topic(topic), 0, 0)])
    message = consumer.poll(TIMEOUT)
    consumer.close()
    assert message.timestamp()[1] > 1_700_000_000_000


def test_deliveries_are_counted_without_a_further_letter(client: dict[str, str | int | bool], topic: str) -> None:
    letters = KafkaDeadLetters(client, topic)
    for offset in range(100):
        letters.send(shard=0, offset=offset, time=0, reason="why", value=b"value")
    eventually(lambda: letters.counts() == DeadLetterCounts(sent=100, delivered=100, lost=0))
    letters.close(TIMEOUT)
    letters.close(TIMEOUT)
