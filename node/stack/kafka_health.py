"""Kafka's health as a client sees it: a record that goes in and comes out again.

Import this only where a check is due: the client library takes a while to load.
"""

import time
import uuid
from collections.abc import Callable, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from strandline.node.stack.errors import Unhealthy

HEALTH_TOPIC = "_strandline-health"
_TOPIC_CONFIG = {"retention.ms": "600000", "segment.ms": "600000", "segment.bytes": "1048576"}
_SLICE = 0.1
"""Seconds that one call into librdkafka may take: between two of them Python sees Ctrl-C."""

ClientConfig = dict[str, str | int | float | bool]


def check_kafka(bootstrap: str, client: Mapping[str, str], timeout: float) -> None:
    """Produce one record to the health topic and consume it by its offset, all within `timeout` seconds; otherwise
    raise `Unhealthy`. What librdkafka has to say meanwhile is kept quiet.
    """
    deadline = time.monotonic() + timeout
    config: ClientConfig = {"bootstrap.servers": bootstrap, "log_level": 0, **client}
    token = uuid.uuid4().bytes
    try:
        _make_topic(config, deadline)
        offset = _produce(config, token, deadline)
        _consume(config, token, offset, deadline)
    except KafkaException as failure:
        raise Unhealthy(f"Kafka at {bootstrap}: {_error_of(failure).str()}") from failure
    except Unhealthy as failure:
        raise Unhealthy(f"Kafka at {bootstrap}: {failure.message}") from failure


def _make_topic(config: ClientConfig, deadline: float) -> None:
    admin = AdminClient(config)
    topic = NewTopic(HEALTH_TOPIC, num_partitions=1, replication_factor=1, config=_TOPIC_CONFIG)
    creation = admin.create_topics([topic], request_timeout=_left(deadline))[HEALTH_TOPIC]
    _until(creation.done, lambda: admin.poll(_SLICE), deadline, "the health topic was not made in time")
    failure = creation.exception()
    if isinstance(failure, KafkaException) and _error_of(failure).code() == KafkaError.TOPIC_ALREADY_EXISTS:
        return
    if failure is not None:
        raise failure


def _produce(config: ClientConfig, value: bytes, deadline: float) -> int:
    told: list[tuple[KafkaError | None, Message]] = []
    producer = Producer(config | {"message.timeout.ms": round(_left(deadline) * 1000), "linger.ms": 0})
    producer.produce(
        HEALTH_TOPIC, value=value, partition=0, on_delivery=lambda error, message: told.append((error, message))
    )
    _until(lambda: bool(told), lambda: producer.poll(_SLICE), deadline, "a record was not taken in time")
    error, message = told[0]
    offset = message.offset()
    if error is not None or offset is None:
        raise KafkaException(error)
    return offset


def _consume(config: ClientConfig, value: bytes, offset: int, deadline: float) -> None:
    # The group id is a formality: with an assignment of its own the consumer joins no group.
    consumer = Consumer(config | {"group.id": HEALTH_TOPIC, "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(HEALTH_TOPIC, 0, offset)])
        _until(
            lambda: (message := consumer.poll(_SLICE)) is not None and message.value() == value,
            lambda: None,
            deadline,
            "a record that it took did not come back in time",
        )
    finally:
        consumer.close()


def _until(condition: Callable[[], bool], work: Callable[[], object], deadline: float, complaint: str) -> None:
    while not condition():
        if time.monotonic() >= deadline:
            raise Unhealthy(complaint)
        work()


def _left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())


def _error_of(failure: KafkaException) -> KafkaError:
    error: KafkaError = failure.args[0]
    return error
