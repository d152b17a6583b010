"""The health check of Kafka: producing a record and consuming it.

Import this module only to run a check: loading the client library takes a while.
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
"""The maximum seconds of one call into librdkafka. Python handles Ctrl-C between two calls."""

ClientConfig = dict[str, str | int | float | bool]


def check_kafka(bootstrap: str, client: Mapping[str, str], timeout: float) -> None:
    """Produce a record to the health topic and consume it by its offset. Raises `Unhealthy` if that fails or takes more
    than `timeout` seconds. librdkafka's log lines are suppressed.
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
    _until(creation.done, lambda: admin.poll(_SLICE), deadline, "the health topic was not created in time")
    failure = creation.exception()
    if isinstance(failure, KafkaException) and _error_of(failure).code() == KafkaError.TOPIC_ALREADY_EXISTS:
        return
    if failure is not None:
        raise failure


def _produce(config: ClientConfig, value: bytes, deadline: float) -> int:
    reports: list[tuple[KafkaError | None, Message]] = []
    producer = Producer(config | {"message.timeout.ms": round(_left(deadline) * 1000), "linger.ms": 0})
    producer.produce(
        HEALTH_TOPIC, value=value, partition=0, on_delivery=lambda error, message: reports.append((error, message))
    )
    _until(lambda: bool(reports), lambda: producer.poll(_SLICE), deadline, "a record was not acknowledged in time")
    error, message = reports[0]
    offset = message.offset()
    if error is not None or offset is None:
        raise KafkaException(error)
    return offset


def _consume(config: ClientConfig, value: bytes, offset: int, deadline: float) -> None:
    # The library requires a group id, but a consumer with a manual assignment joins no group.
    consumer = Consumer(config | {"group.id": HEALTH_TOPIC, "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(HEALTH_TOPIC, 0, offset)])
        _until(
            lambda: (message := consumer.poll(_SLICE)) is not None and message.value() == value,
            lambda: None,
            deadline,
            "an acknowledged record was not consumed in time",
        )
    finally:
        consumer.close()


def _until(condition: Callable[[], bool], poll: Callable[[], object], deadline: float, message: str) -> None:
    while not condition():
        if time.monotonic() >= deadline:
            raise Unhealthy(message)
        poll()


def _left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())


def _error_of(failure: KafkaException) -> KafkaError:
    error: KafkaError = failure.args[0]
    return error
