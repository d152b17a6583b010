"""The dead-letter topic: records that can't be decoded, unchanged, with headers for the reason and the origin."""

import logging
import threading
from contextlib import suppress
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Producer

from strandline.clock import SystemClock
from strandline.kafka.clients import BrokerErrors, ClientOptions, create_client
from strandline.kafka.error_mapping import error_of
from strandline.node.shard.kafka_topics import dead_topic
from strandline.node.shard.log import DeadLetterCounts

REASON = "strandline-reason"
TOPIC = "strandline-topic"
PARTITION = "strandline-partition"
OFFSET = "strandline-offset"
TIME = "strandline-time"
"""The headers, all text. The time is the record's, in milliseconds."""

_LOG = logging.getLogger(__name__)

_TUNING: ClientOptions = {
    # The limits of what is queued while the brokers are unreachable.
    "queue.buffering.max.kbytes": 16 << 10,
    "queue.buffering.max.messages": 10_000,
    # Dead letters are not urgent: prefer few requests.
    "linger.ms": 100,
    # Only the topic's own limit applies.
    "message.max.bytes": 1_000_000_000,
    "reconnect.backoff.ms": 500,
}
_PURGE_S = 1.0
_OWN: ClientOptions = {"enable.idempotence": True, "acks": "all"}


@dataclass(frozen=True, slots=True)
class _Origin:
    partition: int
    offset: int
    reason: str


class KafkaDeadLetters:
    """Sends the `DeadLetters` of a topic to the topic that `create_dead_topic` creates.

    Thread-safe. `send` and `counts` also process delivery reports, so it is enough to call `counts` regularly.
    """

    def __init__(self, options: ClientOptions, topic: str) -> None:
        """`topic` is the topic that the records come from. Raises `KafkaFailed` if the library rejects the options."""
        self._topic, self._dead = topic, dead_topic(topic)
        self._producer = create_client(
            Producer, {**_TUNING, **options, **_OWN, "error_cb": BrokerErrors(self._dead, SystemClock()).on_error}
        )
        self._lock = threading.Lock()
        self._sent = self._delivered = self._lost = 0

    def send(self, *, shard: int, offset: int, time: int, reason: str, value: bytes) -> None:
        origin = _Origin(shard, offset, reason)
        headers = {REASON: reason, TOPIC: self._topic, PARTITION: str(shard), OFFSET: str(offset), TIME: str(time)}
        with self._lock:
            self._sent += 1
        # First, because delivered letters make space in the queue.
        self._serve_deliveries()
        try:
            self._producer.produce(
                self._dead,
                value=value,
                headers=[(name, text.encode()) for name, text in headers.items()],
                on_delivery=lambda error, _: self._on_delivery(origin, error),
            )
        except BufferError:
            self._count_lost(origin, "the queue is full")
        except KafkaException as failure:
            self._count_lost(origin, error_of(failure).str())

    def counts(self) -> DeadLetterCounts:
        """The current counts."""
        self._serve_deliveries()
        with self._lock:
            return DeadLetterCounts(self._sent, self._delivered, self._lost)

    def wait(self, timeout: float) -> None:
        self._flush(timeout)

    def close(self, timeout: float) -> None:
        if self._flush(timeout):
            # Then `_on_delivery` is called for each remaining letter, and counts it as lost.
            self._producer.purge()
            self._flush(_PURGE_S)

    def _serve_deliveries(self) -> None:
        # An error that is final for the client, such as a missing permission, is raised here once instead of being
        # reported to `error_cb`. Queued letters are then reported to `_on_delivery`; `produce` refuses later ones.
        with suppress(KafkaException):
            self._producer.poll(0)

    def _flush(self, timeout: float) -> int:
        """The number of letters that are not delivered after this time."""
        with suppress(KafkaException):
            return int(self._producer.flush(timeout))
        return len(self._producer)

    def _on_delivery(self, origin: _Origin, error: KafkaError | None) -> None:
        if error is not None:
            self._count_lost(origin, error.str())
            return
        with self._lock:
            self._delivered += 1

    def _count_lost(self, origin: _Origin, why: str) -> None:
        with self._lock:
            self._lost += 1
        _LOG.warning(
            "the dead letter of partition %d of topic %s, offset %d (%s) is lost: %s",
            origin.partition, self._topic, origin.offset, origin.reason, why,
        )  # fmt: skip
