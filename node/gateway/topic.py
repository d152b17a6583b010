"""What is known of the topic: how many partitions it has, and whether its brokers answer.

A thread of its own asks them, now and then and whenever something went wrong. Nobody who handles a request waits for
the answer: what counts is the last one.
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
# What a batch has around its record.
_BATCH_OVERHEAD = 512


class Topic(Protocol):
    """What whoever handles requests wants to know. No call waits."""

    @property
    def partitions(self) -> int:
        """How many there are; 0 as long as nobody knows."""
        ...

    @property
    def trouble(self) -> StrandlineError | None:
        """Why nothing can be written, as far as is known."""
        ...

    def refresh_soon(self) -> None:
        """Something went wrong: look soon."""
        ...


class TopicInspector(Protocol):
    """Asks brokers about a topic."""

    def inspect(self) -> TopicIdentity:
        """The topic as it is now. Raises `LogUnreachable`, `TopicMissing`, `TopicUnfit` or `KafkaRefused`."""
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...


@dataclass(frozen=True, slots=True)
class TopicNeeds:
    """What a topic's settings must allow: buckets of this length, and records of this size before they are packed."""

    flush_interval_ms: int
    max_record: int


class KafkaTopicInspector:
    """Looks at a topic of real brokers. Its settings are checked until they were found to be right once."""

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
    """How large a record may be once it is packed, with what is around it in a batch."""
    # Bytes that snappy can't make shorter it makes longer, by a sixth at the most.
    return max_record + max_record // 6 + _BATCH_OVERHEAD


def check_record_size(topic: str, max_record: int, topic_limit: int) -> None:
    """Raises `TopicUnfit` if a record that is as large as records may be would not get into the topic."""
    largest = largest_packed(max_record)
    if largest > topic_limit:
        raise TopicUnfit(
            f"topic {topic} takes records of {topic_limit} bytes (max.message.bytes), and with gateway.max_record "
            f"{max_record} they may have {largest} once packed",
            remedy=f"Lower gateway.max_record to {max(0, (topic_limit - _BATCH_OVERHEAD) * 6 // 7)}, or raise the "
            "topic's max.message.bytes",
        )


class TopicWatch:
    """The `Topic` that a thread keeps looking at, from `start` to `close`."""

    def __init__(self, inspector: TopicInspector, producer: RecordProducer, interval_s: float) -> None:
        self._inspector, self._producer, self._interval_s = inspector, producer, interval_s
        self._partitions, self._topic_id = 0, ""
        self._trouble: StrandlineError | None = LogUnreachable("Kafka has not been asked yet")
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
        """Look for the first time, and from then on. Raises what is wrong with the topic; brokers that don't answer,
        and a topic that is not there yet, are waited for in the background.
        """
        try:
            self.refresh()
        except Fatal:
            self._inspector.close()
            raise
        self._thread = threading.Thread(target=self._run, name="topic", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more. Does not wait for brokers."""
        self._stopped.set()
        self._wake.set()

    def refresh(self) -> None:
        """Look once. Raises what is wrong with the topic, which is noted as well; what passes is only noted."""
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
            _LOG.warning("the topic was deleted and made again", topic=identity.topic, topic_id=identity.topic_id)
            self._producer.renew()
        self._topic_id = identity.topic_id
        if identity.partitions > self._partitions:
            # The producer has to know of them first.
            self._producer.await_partitions(identity.partitions)
        if identity.partitions != self._partitions:
            _LOG.info("partitions", topic=identity.topic, partitions=identity.partitions, before=self._partitions)
            self._partitions = identity.partitions

    def _record_trouble(self, error: StrandlineError | None) -> None:
        # Another kind of trouble is news, as that of the first look is; other words for the same one are not.
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
        # Somebody has to do something, and then it goes on: it has been logged, and /-/ready tells it.
        with suppress(Fatal):
            self.refresh()

    def _wait(self) -> bool:
        """Until it is time to look again, or somebody asks for it; whether it is over. However many ask, there is some
        time between two looks.
        """
        if self._stopped.wait(min(_MIN_INTERVAL_S, self._interval_s)):
            return True
        if self._trouble is None:
            self._wake.wait(self._interval_s)
        self._wake.clear()
        return self._stopped.is_set()
