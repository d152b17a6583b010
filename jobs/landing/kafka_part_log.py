"""The `PartTransactions` of Kafka: a transactional producer of librdkafka for each part."""
# ruff: noqa: SLF001 - the names of the library's own errors, unlike those of the brokers, begin with an underscore

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from strandline.clock import Clock
from strandline.errors import StrandlineError
from strandline.jobs.landing.kafka_acls import acl_remedies
from strandline.jobs.landing.kafka_group import OFFSET_PARTITION, KafkaGroups
from strandline.jobs.landing.part_log import PartLog
from strandline.jobs.landing.progress import PartIdentity
from strandline.jobs.landing.transactions import (
    TRANSACTION_TIMEOUT_S,
    CommittedOffset,
    LandingUnknown,
    PartFenced,
    Record,
    RecordsRefused,
)
from strandline.kafka.clients import BrokerErrors, ClientOptions, create_client
from strandline.kafka.error_mapping import error_of, mapped_error
from strandline.kafka.errors import KafkaFailed, KafkaRefused, LogUnreachable, TopicUnfit
from strandline.wire.record_headers import CHECKED_HEADERS, RecordHeaders

_TUNING: ClientOptions = {
    # The records are compressed already.
    "compression.type": "none",
    # The limit of the topic applies.
    "message.max.bytes": 1_000_000_000,
    # Far above the size of a chunk, so that the queue always has room for it.
    "queue.buffering.max.kbytes": 1 << 20,
    "queue.buffering.max.messages": 10_000_000,
    # For records with a key: the partitions that Kafka's Java clients would choose.
    "partitioner": "murmur2_random",
    "reconnect.backoff.ms": 100,
    "reconnect.backoff.max.ms": 2_000,
}
_TIMEOUT_MS = int(TRANSACTION_TIMEOUT_S * 1000)
_OWN: ClientOptions = {
    "enable.idempotence": True,
    "acks": "all",
    "transaction.timeout.ms": _TIMEOUT_MS,
    # A later record could not be part of the transaction.
    "message.timeout.ms": _TIMEOUT_MS,
}

# `_FENCED` may have two causes: another holder, or a commit after the transaction's timeout.
_LOST = frozenset({
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.INVALID_PRODUCER_ID_MAPPING,
    KafkaError.UNKNOWN_PRODUCER_ID,
    KafkaError.INVALID_TXN_STATE,
})  # fmt: skip
_REJECTED = frozenset({
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.INVALID_RECORD,
    KafkaError.INVALID_TIMESTAMP,
    KafkaError.RECORD_LIST_TOO_LARGE,
})  # fmt: skip


class ProducerClient(Protocol):
    """The methods of confluent-kafka's producer that are used here."""

    def list_topics(self, topic: str, timeout: float) -> Any: ...

    def init_transactions(self, timeout: float) -> None: ...

    def begin_transaction(self) -> None: ...

    def produce(
        self,
        topic: str,
        *,
        value: bytes,
        key: bytes | None,
        partition: int,
        headers: RecordHeaders,
    ) -> None: ...

    def flush(self, timeout: float) -> int: ...

    def send_offsets_to_transaction(
        self, positions: list[TopicPartition], group_metadata: object, timeout: float
    ) -> None: ...

    def commit_transaction(self, timeout: float) -> None: ...

    def abort_transaction(self, timeout: float) -> None: ...

    def purge(self) -> None: ...


def producer_options(options: ClientOptions, part: PartIdentity) -> Mapping[str, str | int | bool]:
    """The producer's options. Independently of the settings, a part has its own transactional id, and the timeouts of
    records and requests are at most that of a transaction: the library rejects a longer `socket.timeout.ms`.
    """
    request_ms = min(int(options.get("socket.timeout.ms", _TIMEOUT_MS)), _TIMEOUT_MS)
    return {**_TUNING, **options, **_OWN, "socket.timeout.ms": request_ms, "transactional.id": part.name}


def kafka_part_log(
    options: ClientOptions, topic: str, clock: Clock, headers: RecordHeaders = CHECKED_HEADERS
) -> PartLog:
    """The part log of a topic, with these headers for its records. Connects in the background."""
    return PartLog(KafkaTransactions(options, topic, clock), clock, headers)


@contextmanager
def shared_part_logs(
    options: ClientOptions, topic: str, clock: Clock, headers: RecordHeaders = CHECKED_HEADERS
) -> Iterator[Callable[[], PartLog]]:
    """A function that opens part logs of a topic, each for one thread, that share one admin client. Without sharing,
    fencing thousands of parts would create as many admin clients.
    """
    with closing(KafkaGroups(options, topic, clock)) as groups:
        yield lambda: PartLog(KafkaTransactions(options, topic, clock, groups), clock, headers)


class KafkaTransactions:
    """The transactions of parts in Kafka."""

    def __init__(self, options: ClientOptions, topic: str, clock: Clock, groups: KafkaGroups | None = None) -> None:
        """`groups`, if given, are not closed by `close`. Raises `KafkaFailed` if the library rejects the options."""
        self._options, self._topic, self._clock = options, topic, clock
        self._groups = groups or KafkaGroups(options, topic, clock)
        self._owns_groups = groups is None
        self._part: PartIdentity | None = None
        self._producer: ProducerClient | None = None
        self._group_metadata: object = None

    def hold(self, part: PartIdentity, timeout: float) -> None:
        self._release()
        deadline = self._clock.monotonic() + timeout
        self._groups.require_topic(timeout)
        self._part = part
        callbacks = {"error_cb": BrokerErrors(self._topic, self._clock).on_error}
        self._producer = create_client(Producer, {**producer_options(self._options, part), **callbacks})
        what = f"{part} can't be begun"
        with self._explained(what):
            # First, because with this metadata the producer finds its transaction coordinator sooner.
            self._producer.list_topics(self._topic, self._left(deadline, what))
            self._producer.init_transactions(self._left(deadline, what))

    def committed(self, part: PartIdentity, timeout: float) -> CommittedOffset | None:
        return self._groups.committed(part, timeout)

    def partitions(self, timeout: float) -> int:
        self._groups.require_topic(timeout)
        what = f"the partitions of topic {self._topic} can't be read"
        with self._explained(what):
            # By the producer, whose metadata then includes added partitions.
            known = self._held().list_topics(self._topic, timeout).topics[self._topic]
            if known.error is not None:
                raise self._meaning(known.error, what)
        return len(known.partitions)

    def begin(self) -> None:
        producer, part = self._held(), self._part
        if self._group_metadata is None and part is not None:
            # Not in `hold`, because most fenced parts land nothing.
            self._group_metadata = self._metadata_of(part)
        with self._explained(f"no transaction of {part} can be begun"):
            producer.begin_transaction()

    def send(self, records: Sequence[Record], headers: RecordHeaders, timeout: float) -> None:
        producer = self._held()
        what = f"records of {self._part} can't be sent"
        # Without a delivery callback: the library can't call one while it reports a fatal error of the client. A record
        # that was not delivered fails the next call of the transaction with the record's error.
        for record in records:
            with self._explained(what, record.partition):
                producer.produce(
                    self._topic,
                    value=record.value,
                    key=record.key,
                    partition=record.partition,
                    headers=[*headers, *record.headers],
                )
        with self._explained(what):
            waiting = producer.flush(timeout)
        if waiting:
            raise LogUnreachable(
                f"{what}: {waiting} of {len(records)} were not acknowledged within {timeout:.1f} s",
                remedy="Check that the brokers run",
            )

    def send_offset(self, offset: int, metadata: str, timeout: float) -> None:
        position = TopicPartition(self._topic, OFFSET_PARTITION, offset, metadata)
        with self._explained(f"the offset of {self._part} can't be sent"):
            self._held().send_offsets_to_transaction([position], self._group_metadata, timeout)

    def commit(self, timeout: float) -> None:
        what = f"a transaction of {self._part} can't be committed"
        try:
            self._held().commit_transaction(timeout)
        except KafkaException as failure:
            error = error_of(failure)
            cause = self._meaning(error, what)
            if error.txn_requires_abort() or isinstance(cause, PartFenced | KafkaRefused):
                raise cause from failure
            raise LandingUnknown(f"{cause.message}, so a chunk may have landed", remedy=cause.remedy) from failure

    def abort(self, timeout: float) -> None:
        with self._explained(f"a transaction of {self._part} can't be aborted"):
            self._held().abort_transaction(timeout)

    def offset_retention_ms(self, timeout: float) -> int:
        return self._groups.offset_retention_ms(timeout)

    def delete_group(self, part: PartIdentity, timeout: float) -> None:
        self._groups.delete(part, timeout)

    def close(self) -> None:
        self._release()
        if self._owns_groups:
            self._groups.close()

    def _held(self) -> ProducerClient:
        if self._producer is None:
            raise RuntimeError("`hold` must be called before a transaction")
        return self._producer

    def _release(self) -> None:
        """Release the producer. An open transaction is left to the next holder, or the timeout, which aborts it."""
        if self._producer is not None:
            self._producer.purge()
            self._producer = self._part = self._group_metadata = None

    def _metadata_of(self, part: PartIdentity) -> object:
        """The group metadata that the producer needs. The library only offers it for consumers."""
        with closing(create_client(Consumer, {**self._options, "group.id": part.name})) as consumer:
            return consumer.consumer_group_metadata()

    def _left(self, deadline: float, what: str) -> float:
        left = deadline - self._clock.monotonic()
        if left <= 0:
            raise LogUnreachable(f"{what}: the brokers have not answered", remedy="Check that they run")
        return left

    @contextmanager
    def _explained(self, what: str, partition: int | None = None) -> Iterator[None]:
        try:
            yield
        except KafkaException as failure:
            error = error_of(failure)
            if partition is not None and error.code() == KafkaError._UNKNOWN_PARTITION:
                raise TopicUnfit(
                    f"{what}: the producer knows no partition {partition} of topic {self._topic}",
                    remedy="Read the number of partitions before each chunk",
                ) from failure
            raise self._meaning(error, what) from failure

    def _meaning(self, error: KafkaError, what: str) -> StrandlineError:
        if error.code() in _LOST:
            return PartFenced(
                f"{what}: {error.str()}. It has another holder, or a transaction took longer than "
                f"{TRANSACTION_TIMEOUT_S:g} s",
                remedy="Begin it again if its lease is still held",
            )
        if error.code() in _REJECTED:
            return RecordsRefused(
                f"{what}: {error.str()}", remedy=f"Raise max.message.bytes of the topic {self._topic} to 1 MB or more"
            )
        if error.code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
            return KafkaFailed(
                f"{what}: {error.str()}", remedy=f"Raise transaction.max.timeout.ms of the brokers to {_TIMEOUT_MS}"
            )
        return mapped_error(error, what, self._topic, acl_remedies(self._topic, self._part))
