"""Keeps the number of the topic's partitions up to date, and whether its brokers answer.

A separate thread queries the brokers, periodically and after errors. Requests don't wait for it: they use the last
result.
"""

import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import structlog

from strandline.errors import Fatal, StrandlineError
from strandline.kafka.clients import ClientOptions
from strandline.node.gateway.producer import RecordProducer
from strandline.node.shard.kafka_admin import KafkaAdmin, TopicIdentity
from strandline.node.shard.kafka_topics import TopicRules, unclean_election_warning
from strandline.node.shard.log import LogUnreachable, TopicUnfit

_LOG = structlog.get_logger(__name__)

_REQUEST_TIMEOUT_MS = 5_000
_MIN_INTERVAL_S = 1.0
# The bytes of a batch in addition to its record.
_BATCH_OVERHEAD = 512


class Topic(Protocol):
    """What is known about the topic. No call blocks."""

    @property
    def partitions(self) -> int:
        """The number of partitions; 0 while it is unknown."""
        ...

    @property
    def trouble(self) -> StrandlineError | None:
        """Why nothing can be written; None if writing works as far as is known."""
        ...

    def refresh_soon(self) -> None:
        """Query the topic soon, because an error occurred."""
        ...


class TopicInspector(Protocol):
    """Queries the topic from the brokers."""

    def inspect(self) -> TopicIdentity:
        """The current topic. Raises `LogUnreachable`, `TopicMissing`, `TopicUnfit` or `KafkaRefused`."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


@dataclass(frozen=True, slots=True)
class TopicNeeds:
    """What a topic's settings must allow: buckets of this length, and uncompressed records of this size."""

    flush_interval_ms: int
    max_record: int


class KafkaTopicInspector:
    """Queries a topic from real brokers. Its settings are checked until they have been valid once."""

    def __init__(self, options: ClientOptions, topic: str, needs: TopicNeeds) -> None:
        self._admin = KafkaAdmin({**options, "socket.timeout.ms": _REQUEST_TIMEOUT_MS}, topic)
        self._needs = needs
        self._is_checked = False

    def inspect(self) -> TopicIdentity:
        identity = self._admin.identity()
        if not self._is_checked:
            settings = self._admin.settings()
            TopicRules(self._needs.flush_interval_ms).check(identity.topic, settings)
            check_record_size(identity.topic, self._needs.max_record, int(settings["max.message.bytes"]))
            if warning := unclean_election_warning(identity.topic, settings):
                _LOG.warning("the topic puts records at risk", reason=warning)
            self._is_checked = True
        return identity

    def close(self) -> None:
        self._admin.close()


def largest_packed(max_record: int) -> int:
    """The maximum size of a batch with one compressed record."""
    # Snappy makes incompressible data longer, by at most a sixth.
    return max_record + max_record // 6 + _BATCH_OVERHEAD


def check_record_size(topic: str, max_record: int, topic_limit: int) -> None:
    """Raises `TopicUnfit` if the topic would reject the largest possible record."""
    largest = largest_packed(max_record)
    if largest > topic_limit:
        raise TopicUnfit(
            f"topic {topic} accepts records of at most {topic_limit} bytes (max.message.bytes), but with "
            f"gateway.max_record {max_record} a compressed record may have {largest}",
            remedy=f"Lower gateway.max_record to {max(0, (topic_limit - _BATCH_OVERHEAD) * 6 // 7)}, or raise the "
            "topic's max.message.bytes",
        )


class TopicWatch:
    """The `Topic` that a thread queries periodically, from `start` to `close`."""

    def __init__(self, inspector: TopicInspector, producer: RecordProducer, interval_s: float) -> None:
        self._inspector, self._producer, self._interval_s = inspector, producer, interval_s
        self._partitions, self._topic_id = 0, ""
        self._trouble: StrandlineError | None = LogUnreachable("Kafka has not been queried yet")
        self._logged: type[StrandlineError] | None = None
        self._wake, self._stopped = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def partitions(self) -> int:
        return self._partitions

    @property
    def trouble(self) -> StrandlineError | None:
        return self._trouble

    def refresh_soon(self) -> None:
        self._wake.set()

    def start(self) -> None:
        """Refresh once, and then periodically. Raises an error if the topic is not usable. If brokers don't answer or
        the topic does not exist yet, the thread keeps trying.
        """
        try:
            self.refresh()
        except Fatal:
            self._inspector.close()
            raise
        self._thread = threading.Thread(target=self._run, name="topic", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop refreshing. Does not wait for brokers."""
        self._stopped.set()
        self._wake.set()

    def refresh(self) -> None:
        """Query the topic once. An error is recorded as `trouble`, and raised if it is not transient."""
        try:
            identity = self._inspector.inspect()
            self._apply(identity)
        except StrandlineError as error:
            self._record_trouble(error)
            if not error.transient:
                raise
        else:
            self._record_trouble(None)

    def _apply(self, identity: TopicIdentity) -> None:
        if self._topic_id not in ("", identity.topic_id):
            _LOG.warning("the topic was deleted and created again", topic=identity.topic, topic_id=identity.topic_id)
            self._producer.renew()
        self._topic_id = identity.topic_id
        if identity.partitions > self._partitions:
            # The producer must know them first.
            self._producer.await_partitions(identity.partitions)
        if identity.partitions != self._partitions:
            _LOG.info("partitions", topic=identity.topic, partitions=identity.partitions, before=self._partitions)
            self._partitions = identity.partitions

    def _record_trouble(self, error: StrandlineError | None) -> None:
        # Logged when the type of the error changes, not when only its text does.
        kind = type(error) if error is not None else None
        if error is None and self._trouble is not None:
            _LOG.info("Kafka answers")
        elif error is not None and kind is not self._logged:
            _LOG.warning("nothing can be written", reason=str(error))
        self._trouble, self._logged = error, kind

    def _run(self) -> None:
        try:
            while not self._wait():
                self._refresh_and_log()
        finally:
            self._inspector.close()

    def _refresh_and_log(self) -> None:
        # A fatal error has been logged, and /-/ready reports it. When a person has fixed the cause, the gateway works.
        with suppress(Fatal):
            self.refresh()

    def _wait(self) -> bool:
        """Wait until the next refresh is due or requested. Returns whether the watch was closed. Requests don't make
        refreshes more frequent than `_MIN_INTERVAL_S`.
        """
        if self._stopped.wait(min(_MIN_INTERVAL_S, self._interval_s)):
            return True
        if self._trouble is None:
            self._wake.wait(self._interval_s)
        self._wake.clear()
        return self._stopped.is_set()
