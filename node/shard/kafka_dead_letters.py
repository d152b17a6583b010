"""The dead-letter topic: records that can't be decoded, as they were, with headers that say why and where from."""

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
"""The headers, all of them text; the time is the record's, in milliseconds."""

_LOG = logging.getLogger(__name__)

_TUNING: ClientOptions = {
    # All that may wait while the brokers are away.
    "queue.buffering.max.kbytes": 16 << 10,
    "queue.buffering.max.messages": 10_000,
    # Nobody waits for a dead letter: better a few requests than many.
    "linger.ms": 100,
    # The topic's own limit is the one that counts.
    "message.max.bytes": 1_000_000_000,
    "reconnect.backoff.ms": 500,
}
_PURGE_S = 1.0
_OWN: ClientOptions = {"enable.idempotence": True, "acks": "all"}


@dataclass(frozen=True, slots=True)
class _Place:
    partition: int
    offset: int
    reason: str


class KafkaDeadLetters:
    """The `DeadLetters` of a topic, in a topic of their own, which `create_dead_topic` makes.

    Any thread may call it. Deliveries and losses are taken in by `send` and `counts`: whoever shows the counts now and
    then does all that is needed.
    """

    def __init__(self, options: ClientOptions, topic: str) -> None:
        """`topic` is the one that the records come from. Raises `KafkaFailed` if the library won't have the options."""
        self._topic, self._dead = topic, dead_topic(topic)
        self._producer = create_client(
            Producer, {**_TUNING, **options, **_OWN, "error_cb": BrokerErrors(self._dead, SystemClock()).on_error}
        )
        self._lock = threading.Lock()
        self._sent = self._delivered = self._lost = 0

    def send(self, *, shard: int, offset: int, time: int, reason: str, value: bytes) -> None:
        place = _Place(shard, offset, reason)
        headers = {REASON: reason, TOPIC: self._topic, PARTITION: str(shard), OFFSET: str(offset), TIME: str(time)}
        with self._lock:
            self._sent += 1
        # First what was delivered: that makes room.
        self._serve_deliveries()
        try:
            self._producer.produce(
                self._dead,
                value=value,
                headers=[(name, text.encode()) for name, text in headers.items()],
                on_delivery=lambda error, _: self._on_delivery(place, error),
            )
        except BufferError:
            self._count_lost(place, "too many are waiting already")
        except KafkaException as failure:
            self._count_lost(place, error_of(failure).str())

    def counts(self) -> DeadLetterCounts:
        """The counts as of now."""
        self._serve_deliveries()
        with self._lock:
            return DeadLetterCounts(self._sent, self._delivered, self._lost)

    def wait(self, timeout: float) -> None:
        self._flush(timeout)

    def close(self, timeout: float) -> None:
        if self._flush(timeout):
            # `_on_delivery` is then called for each that is left, which counts it.
            self._producer.purge()
            self._flush(_PURGE_S)

    def _serve_deliveries(self) -> None:
        # An error that is final for the client, such as a missing permission, is raised here once instead of being
        # reported to `error_cb`. Queued letters are then reported to `_on_delivery`; `produce` refuses later ones.
        with suppress(KafkaException):
            self._producer.poll(0)

    def _flush(self, timeout: float) -> int:
        """How many are left after this time."""
        with suppress(KafkaException):
            return int(self._producer.flush(timeout))
        return len(self._producer)

    def _on_delivery(self, place: _Place, error: KafkaError | None) -> None:
        if error is not None:
            self._count_lost(place, error.str())
            return
        with self._lock:
            self._delivered += 1

    def _count_lost(self, place: _Place, why: str) -> None:
        with self._lock:
            self._lost += 1
        _LOG.warning(
            "the dead letter of partition %d of topic %s, offset %d (%s) is lost: %s",
            place.partition, self._topic, place.offset, place.reason, why,
        )  # fmt: skip
