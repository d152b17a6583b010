"""A topic in Kafka, and remote-write records in it."""

import logging
from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from strandline.errors import Retryable

# The destination of librdkafka's log lines, which would otherwise go to stderr regardless of the log settings.
_LOG = logging.getLogger(__name__)

TIMEOUT = 90.0
PARTITIONS = 2


class KafkaFailed(Retryable):
    """A Kafka operation failed."""


def make_topic(client: Mapping[str, str | int | bool], topic: str, timeout: float = TIMEOUT) -> None:
    """Create the topic with record times from the brokers, like all our topics."""
    admin = AdminClient(dict(client), logger=_LOG)
    wanted = NewTopic(topic, num_partitions=PARTITIONS, replication_factor=1,
                      config={"message.timestamp.type": "LogAppendTime"})  # fmt: skip
    try:
        admin.create_topics([wanted])[topic].result(timeout)
    except KafkaException as error:
        raise KafkaFailed(f"the topic {topic} could not be made: {error.args[0].str()}") from error


def produce(client: Mapping[str, str | int | bool], topic: str, bodies: Sequence[bytes]) -> list[int]:
    """Spread records over the partitions, and wait until Kafka has all of them. Returns the number of records by
    partition.
    """
    counts = [0] * PARTITIONS
    failures: list[str] = []

    def delivered(error: object, message: Message) -> None:
        if error is not None:
            failures.append(str(error))
        else:
            counts[message.partition() or 0] += 1

    # Errors only: a broker that has just started causes a warning that its coordinator is still loading.
    producer = Producer({**client, "acks": "all", "enable.idempotence": True, "log_level": 3}, logger=_LOG)
    for number, body in enumerate(bodies):
        producer.produce(topic, value=body, partition=number % PARTITIONS, on_delivery=delivered)
        producer.poll(0)
    unsent = producer.flush(TIMEOUT)
    if failures or unsent:
        raise KafkaFailed(f"{unsent + len(failures)} of {len(bodies)} records were not taken: {failures[:1]}")
    return counts
