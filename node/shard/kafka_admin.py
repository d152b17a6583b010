"""Requests to the brokers about one topic, on a separate connection. On a consumer's connection they would wait behind
its fetches, each of which may take as long as `fetch.wait.max.ms`.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

# Imported from where they are defined: the public module does not re-export them explicitly.
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from strandline.clock import Clock
from strandline.kafka.clients import ClientOptions, create_client
from strandline.kafka.error_mapping import NO_SUCH_TOPIC, error_of
from strandline.node.shard.kafka_errors import NO_LEADER, STALE_LEADER, meaning
from strandline.node.shard.log import LogEnds, LogUnreachable, TopicUnfit

_DEFAULT_TIMEOUT_MS = 30_000
_SLACK_S = 0.5
_COMMIT_WAIT_S = 1.0
# For a metadata request right after a broker has answered.
_METADATA_TIMEOUT_S = 1.0
_NO_OFFSET = -1
"""Kafka's answer if no record has such a time."""

# Any, because the functions that return its values have no annotations.
_SPEC: Any = OffsetSpec


@dataclass(frozen=True, slots=True)
class TopicIdentity:
    """The current id and number of partitions of the topic with this name."""

    topic: str
    topic_id: str
    partitions: int

    def require(self, partition: int) -> None:
        """Raises `TopicUnfit` if the topic lacks the partition."""
        if partition >= self.partitions:
            raise TopicUnfit(
                f"topic {self.topic} has no partition {partition}: it has {self.partitions} partitions",
                remedy=f"Add it with `kafka-topics.sh --alter --topic {self.topic} --partitions {partition + 1}`, or "
                "don't serve this shard",
            )


class KafkaAdmin:
    """Sends requests about one topic. Thread-safe. The caller must close it.

    Closing is not left to the garbage collector: a client that is destroyed by one of its own threads, for example
    because the callback of a request held the last reference to it, crashes the process.

    Each request raises `LogUnreachable` if the brokers don't answer within `socket.timeout.ms`, `KafkaRefused` if they
    refuse it, and `TopicUnfit` if the topic does not exist.
    """

    def __init__(self, options: ClientOptions, topic: str) -> None:
        self.topic = topic
        self._timeout = int(options.get("socket.timeout.ms", _DEFAULT_TIMEOUT_MS)) / 1000
        # The library has its own timeout, with a better error. This one only makes sure that nothing waits forever.
        self._answer_timeout = self._timeout + _SLACK_S
        self._commit: Future[ConsumerGroupTopicPartitions] | None = None
        self._client = create_client(AdminClient, options)

    def identity(self) -> TopicIdentity:
        """The current identity of the topic."""
        return self.identity_in(self.request_identity())

    def request_identity(self) -> "Future[Any]":
        """Send a request without waiting; `identity_in` reads the answer."""
        return self._client.describe_topics(TopicCollection([self.topic]), request_timeout=self._timeout)[self.topic]

    def identity_in(self, answer: "Future[Any]") -> TopicIdentity:
        """The identity in an answer. Waits for the answer if necessary."""
        with self._translated_errors(f"topic {self.topic} can't be looked up"):
            description = answer.result(self._answer_timeout)
        # The library writes the id with + and /; Kafka's tools and logs write - and _.
        topic_id = str(description.topic_id).translate(str.maketrans("+/", "-_"))
        return TopicIdentity(self.topic, topic_id, len(description.partitions))

    def settings(self) -> Mapping[str, str]:
        """All settings of the topic, including inherited ones."""
        resource = ConfigResource(ResourceType.TOPIC, self.topic)
        with self._translated_errors(f"the settings of topic {self.topic} can't be read"):
            entries = self._client.describe_configs([resource], request_timeout=self._timeout)[resource].result(
                self._answer_timeout
            )
        return {name: entry.value for name, entry in entries.items() if entry.value is not None}

    def start(self, partition: int) -> int:
        """The first offset in the log."""
        return self._offset(partition, _SPEC.earliest(), IsolationLevel.READ_UNCOMMITTED)

    def end(self, partition: int, isolation: IsolationLevel) -> int:
        """The offset after the last record that is visible at this isolation level."""
        return self._offset(partition, _SPEC.latest(), isolation)

    def request_ends(self, partition: int, clock: Clock) -> "PendingEnds":
        """Request all three offsets without waiting."""
        return PendingEnds(
            self,
            partition,
            # A broker answers the requests of one connection in order, so the offsets rise.
            (
                self._send_offset_request(partition, _SPEC.earliest(), IsolationLevel.READ_UNCOMMITTED),
                self._send_offset_request(partition, _SPEC.latest(), IsolationLevel.READ_COMMITTED),
                self._send_offset_request(partition, _SPEC.latest(), IsolationLevel.READ_UNCOMMITTED),
            ),
            clock,
            clock.monotonic() + self._answer_timeout,
        )

    def at(self, partition: int, time: int) -> int | None:
        """The first stable offset with at least this time."""
        # For Kafka, negative times have special meanings: -1 is the end, -2 the start.
        offset = self._offset(
            partition, _SPEC.for_timestamp(max(0, time)), IsolationLevel.READ_COMMITTED, min_offset=_NO_OFFSET
        )
        return offset if offset != _NO_OFFSET else None

    def create(self, partitions: int, replication: int, settings: Mapping[str, str]) -> bool:
        """Create the topic. False if a topic with this name exists."""
        new = NewTopic(self.topic, num_partitions=partitions, replication_factor=replication, config=dict(settings))
        answer = self._client.create_topics([new], request_timeout=self._timeout)[self.topic]
        with self._translated_errors(
            f"topic {self.topic} can't be created ({partitions} partitions, {replication} replicas)"
        ):
            try:
                answer.result(self._answer_timeout)
            except KafkaException as failure:
                if error_of(failure).code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
                return False
        return True

    def request_commit(self, group: str, partition: int, offset: int) -> "Future[ConsumerGroupTopicPartitions]":
        """Commit an offset for a consumer group without members, without waiting. A callback on the answer must not
        reference this object.

        Not through a consumer: its `close` would wait for the answer as long as a broker hangs.
        """
        wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(self.topic, partition, offset)])
        self._commit = self._client.alter_consumer_group_offsets([wanted], request_timeout=self._timeout)[group]
        return self._commit

    def close(self) -> None:
        """Close the connection. Pending requests are never answered. Closing twice does nothing."""
        # If a client is closed while it commits, in one of some thousand cases one of its threads never ends, and
        # neither does this call.
        wait([self._commit] if self._commit is not None else (), _COMMIT_WAIT_S)
        self._client.__exit__(None, None, None)

    def __del__(self) -> None:
        # In case `close` was not called: the library would close it without the wait above.
        if hasattr(self, "_client"):
            self.close()

    def serve(self) -> None:
        """Serve the library's event queue, which would otherwise grow while the brokers are unreachable."""
        self._client.poll(0)

    def offset_in(self, answer: "Future[Any]", partition: int) -> int:
        """The offset in an answer that has arrived. All its errors are retryable."""
        what = _offsets_unreadable(partition, self.topic)
        with self._translated_errors(what):
            try:
                offset = int(answer.result(0).offset)
            except KafkaException as failure:
                code = error_of(failure).code()
                if code in STALE_LEADER:
                    # See `_offset_by_fresh_leader`. The next request reports whether there is a leader.
                    with suppress(KafkaException):
                        self._client.list_topics(self.topic, timeout=min(self._timeout, _METADATA_TIMEOUT_S))
                if code == NO_LEADER or code in NO_SUCH_TOPIC:
                    raise LogUnreachable(
                        f"{what}: no broker leads it", remedy="Check that its replicas run"
                    ) from failure
                raise
        return _checked_offset(offset, what)

    def _offset(self, partition: int, wanted: OffsetSpec, isolation: IsolationLevel, *, min_offset: int = 0) -> int:
        what = _offsets_unreadable(partition, self.topic)
        with self._translated_errors(what):
            try:
                offset = self._offset_by_fresh_leader(partition, wanted, isolation)
            except KafkaException as failure:
                if error_of(failure).code() != NO_LEADER:
                    raise
                self.identity().require(partition)
                raise LogUnreachable(f"{what}: no broker leads it", remedy="Check that its replicas run") from failure
        return _checked_offset(offset, what, min_offset)

    def _offset_by_fresh_leader(self, partition: int, wanted: OffsetSpec, isolation: IsolationLevel) -> int:
        try:
            return self._fetch_offset(partition, wanted, isolation)
        except KafkaException as failure:
            if error_of(failure).code() not in STALE_LEADER:
                raise
        # To request offsets, the library uses its cached metadata, which it refreshes every five minutes. Neither a
        # stale leader epoch nor a partition without a leader makes it refresh them earlier. This request does.
        self._client.list_topics(self.topic, timeout=self._timeout)
        return self._fetch_offset(partition, wanted, isolation)

    def _fetch_offset(self, partition: int, wanted: OffsetSpec, isolation: IsolationLevel) -> int:
        return int(self._send_offset_request(partition, wanted, isolation).result(self._answer_timeout).offset)

    def _send_offset_request(self, partition: int, wanted: OffsetSpec, isolation: IsolationLevel) -> "Future[Any]":
        where = TopicPartition(self.topic, partition)
        return self._client.list_offsets({where: wanted}, isolation_level=isolation, request_timeout=self._timeout)[
            where
        ]

    @contextmanager
    def _translated_errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except KafkaException as failure:
            raise meaning(error_of(failure), what, self.topic) from failure
        except TimeoutError as failure:
            raise LogUnreachable(
                f"{what}: the brokers have not answered for {self._timeout:g} s", remedy="Check that the brokers run"
            ) from failure


class PendingEnds:
    """The `EndsRequest` of a partition."""

    def __init__(
        self,
        admin: KafkaAdmin,
        partition: int,
        answers: "tuple[Future[Any], Future[Any], Future[Any]]",
        clock: Clock,
        deadline: float,
    ) -> None:
        """Created by `KafkaAdmin.request_ends`. `answers`: the start, the last stable offset and the high watermark."""
        self._admin, self._partition, self._answers = admin, partition, answers
        self._clock, self._deadline = clock, deadline

    def answer(self) -> LogEnds | None:
        found: list[int] = []
        for one in self._answers:
            if not one.done():
                self._require_time()
                return None
            found.append(self._admin.offset_in(one, self._partition))
        start, last_stable, high = found
        # The answers may be from different leaders.
        last_stable = max(start, last_stable)
        return LogEnds(start, last_stable, max(last_stable, high))

    def _require_time(self) -> None:
        if self._clock.monotonic() >= self._deadline:
            raise LogUnreachable(
                f"{_offsets_unreadable(self._partition, self._admin.topic)}: the brokers have not answered",
                remedy="Check that the brokers run",
            )


def _offsets_unreadable(partition: int, topic: str) -> str:
    return f"the offsets of partition {partition} of topic {topic} can't be read"


def _checked_offset(offset: int, what: str, min_offset: int = 0) -> int:
    if offset < min_offset:
        # If a broker hangs past the timeout, the library returns offset -1001 instead of an error.
        raise LogUnreachable(f"{what}: no broker has answered", remedy="Check that the brokers run")
    return offset
