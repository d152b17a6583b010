"""The `RecordProducer` for real brokers: librdkafka's idempotent producer, with a thread that polls its deliveries."""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import structlog
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, KafkaException, Message, Producer

from strandline.clock import SystemClock
from strandline.errors import StrandlineError
from strandline.kafka.clients import BrokerErrors, ClientOptions, create_client
from strandline.kafka.error_mapping import ALL_DOWN, error_of
from strandline.node.gateway.broker_clock import BrokerClock
from strandline.node.gateway.figures import ProducerCounts
from strandline.node.gateway.producer import NotDelivered, OnDone, Record
from strandline.wire.record_headers import CHECKED_HEADERS, RecordHeaders

_LOG = structlog.get_logger(__name__)

_TUNING: ClientOptions = {
    # Records of concurrent requests are batched. A single request is delayed by at most this.
    "linger.ms": 2,
    # Records are already compressed.
    "compression.type": "none",
    # Only the topic's limit applies.
    "message.max.bytes": 1_000_000_000,
    "reconnect.backoff.ms": 100,
    "reconnect.backoff.max.ms": 2_000,
    "statistics.interval.ms": 5_000,
}
_OWN: ClientOptions = {"enable.idempotence": True, "acks": "all"}

RECORD_OVERHEAD = 1 << 10
"""The approximate memory of a record in addition to its bytes."""
_MAX_MESSAGES = 10_000_000
_MAX_BATCH = 1_000_000
"""librdkafka's default for `batch.size`."""

_POLL_S = 0.2
_METADATA_TIMEOUT_S = 5.0
_PURGE_TIMEOUT_S = 5.0


class Client(Protocol):
    """The part of confluent-kafka's producer that is used here."""

    def produce(
        self,
        topic: str,
        *,
        value: bytes,
        partition: int,
        headers: RecordHeaders,
        on_delivery: Callable[..., None],
    ) -> None: ...

    def poll(self, timeout: float) -> int: ...

    def flush(self, timeout: float) -> int: ...

    def purge(self) -> None: ...

    def list_topics(self, topic: str, timeout: float) -> Any: ...

    def __len__(self) -> int: ...


class ClientFactory(Protocol):
    """Creates a client that reports errors and statistics to these callbacks."""

    def __call__(self, on_error: Callable[[KafkaError], None], on_statistics: Callable[[str], None]) -> Client: ...


@dataclass(frozen=True, slots=True)
class Bounds:
    """The time for brokers to acknowledge a record, the maximum bytes that wait for that, and the maximum size of a
    batch, since the topic's limit applies to batches.
    """

    timeout_s: float
    max_in_flight: int
    max_batch: int


def client_factory(options: ClientOptions, bounds: Bounds) -> ClientFactory:
    """Returns a factory for librdkafka's producers. The gateway limits the bytes in flight itself. The limits of the
    library's queue are higher, so they are not reached.
    """
    limits: ClientOptions = {
        "message.timeout.ms": int(bounds.timeout_s * 1000),
        "batch.size": min(bounds.max_batch, _MAX_BATCH),
        "queue.buffering.max.kbytes": min(2 * bounds.max_in_flight // 1024 + (64 << 10), 2**31 - 1),
        "queue.buffering.max.messages": min(2 * bounds.max_in_flight // RECORD_OVERHEAD + 10_000, _MAX_MESSAGES),
    }

    def make(on_error: Callable[[KafkaError], None], on_statistics: Callable[[str], None]) -> Client:
        callbacks = {"error_cb": on_error, "stats_cb": on_statistics}
        client: Client = create_client(Producer, {**_TUNING, **options, **limits, **_OWN, **callbacks})
        return client

    return make


class _Batch:
    """The records of one request. Calls `on_done` when all of them have been delivered or have failed."""

    __slots__ = ("_error", "_left", "_lock", "_on_done", "_owner", "_sent")

    def __init__(self, owner: "KafkaProducer", lock: threading.Lock, records: int, on_done: OnDone) -> None:
        self._owner, self._lock, self._left, self._on_done = owner, lock, records, on_done
        self._error: NotDelivered | None = None
        self._sent = owner.clock.now()

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        """The delivery callback of one record."""
        if error is None:
            kind, time = message.timestamp()
            self._owner.clock.acknowledged(self._sent, time if kind == TIMESTAMP_LOG_APPEND_TIME else None)
        self.finish(1, None if error is None else self._owner.failed(error))

    def finish(self, records: int, error: NotDelivered | None) -> None:
        with self._lock:
            self._error = self._error or error
            self._left -= records
            done = self._left == 0
        if done:
            self._on_done(self._error)


class KafkaProducer:
    """Produces records to one topic. The thread that polls deliveries also compares the clocks, and calls `on_trouble`
    when no broker can be reached.
    """

    def __init__(
        self, make: ClientFactory, topic: str, clock: BrokerClock, on_trouble: Callable[[], None] = lambda: None
    ) -> None:
        """Raises `KafkaFailed` if an option is invalid. Connects in the background."""
        self._make, self._topic, self.clock, self._on_trouble = make, topic, clock, on_trouble
        self._broker_errors = BrokerErrors(topic, SystemClock())
        self._lock, self._client_lock = threading.Lock(), threading.Lock()
        self._counts = ProducerCounts()
        self._retries_of_old_clients = 0
        self._needs_renewal = self._closed = False
        self._client = self._new_client()
        self._thread = threading.Thread(target=self._poll_deliveries, name="deliveries", daemon=True)
        self._thread.start()

    def send(self, records: Sequence[Record], on_done: OnDone) -> None:
        batch = _Batch(self, self._lock, len(records), on_done)
        handed, trouble = self._produce(records, batch.delivered)
        if handed < len(records):
            batch.finish(len(records) - handed, trouble)

    def await_partitions(self, partitions: int) -> None:
        try:
            known = self._client.list_topics(self._topic, timeout=_METADATA_TIMEOUT_S).topics[self._topic].partitions
        except KafkaException as failure:
            raise self.failed(error_of(failure)) from failure
        if len(known) < partitions:
            raise NotDelivered(f"the brokers know of {len(known)} partitions of topic {self._topic}, not {partitions}")

    def renew(self) -> None:
        self._needs_renewal = True

    def counts(self) -> ProducerCounts:
        return self._counts

    def close(self, timeout: float) -> None:
        with self._client_lock:
            self._closed = True
        if self._client.flush(timeout):
            self._purge(self._client)
        self._thread.join(_PURGE_TIMEOUT_S)

    def failed(self, error: KafkaError) -> NotDelivered:
        """Count an error, and convert it into that of the request that it belongs to."""
        self._count_error(error)
        return NotDelivered(f"Kafka did not accept it: {error.str()}")

    def _produce(self, records: Sequence[Record], on_delivery: Callable[..., None]) -> tuple[int, NotDelivered | None]:
        """Produce records. Returns how many the client has accepted, and why it has not accepted the others. A client
        that has been replaced gets no records, since its deliveries are no longer polled.
        """
        handed = 0
        with self._client_lock:
            if self._closed:
                return 0, NotDelivered("the producer is closed")
            try:
                for record in records:
                    self._client.produce(
                        self._topic,
                        value=record.value,
                        partition=record.partition,
                        headers=CHECKED_HEADERS,
                        on_delivery=on_delivery,
                    )
                    handed += 1
            except BufferError:
                return handed, NotDelivered("the producer's queue is full")
            except KafkaException as failure:
                return handed, self.failed(error_of(failure))
        return handed, None

    def _new_client(self) -> Client:
        return self._make(self._on_error, self._on_statistics)

    def _on_error(self, error: KafkaError) -> None:
        self._count_error(error)
        self._broker_errors.on_error(error)
        if error.code() == ALL_DOWN:
            self._on_trouble()

    def _count_error(self, error: KafkaError) -> None:
        if error.fatal() or error.code() == KafkaError._FATAL:  # noqa: SLF001 - the library's name for it
            self._needs_renewal = True
        with self._lock:
            self._counts = replace(self._counts, errors=self._counts.errors + 1)

    def _on_statistics(self, statistics: str) -> None:
        brokers: Mapping[str, Mapping[str, int]] = json.loads(statistics).get("brokers", {})
        retries = sum(broker.get("txretries", 0) for broker in brokers.values())
        with self._lock:
            self._counts = replace(self._counts, retries=self._retries_of_old_clients + retries)

    def _poll_deliveries(self) -> None:
        """The body of the thread: polls deliveries, and replaces a client that needs renewal."""
        while not (self._closed and len(self._client) == 0):
            try:
                self._client.poll(_POLL_S)
            except KafkaException as failure:
                # The library raises errors that are fatal for the client here, instead of calling `error_cb`.
                self._on_error(error_of(failure))
            if self._needs_renewal and not self._closed:
                self._replace()

    def _replace(self) -> None:
        try:
            new = self._new_client()
        except StrandlineError as error:
            _LOG.error("Kafka's client can't be created again", reason=str(error))
            return
        with self._client_lock:
            old, self._client, self._needs_renewal = self._client, new, False
        with self._lock:
            self._retries_of_old_clients = self._counts.retries
            self._counts = replace(self._counts, renewals=self._counts.renewals + 1)
        _LOG.warning("Kafka's client was replaced by a new one", topic=self._topic)
        self._purge(old)

    @staticmethod
    def _purge(client: Client) -> None:
        """Fail all records that are still queued, and with them their batches."""
        client.purge()
        client.flush(_PURGE_TIMEOUT_S)
