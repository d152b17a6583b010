"""The consumer group of a part at real brokers: its offset, how long that is kept, and how it is deleted.

The group never has a member. It is asked through the admin client: a consumer's `committed` waits while the offset is
unstable, and can't be told apart from brokers that don't answer.
"""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

# Where they are defined: the public module imports them, but does not say that it passes them on.
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from strandline.clock import Clock
from strandline.errors import StrandlineError
from strandline.jobs.landing.kafka_rights import rights
from strandline.jobs.landing.progress import PartIdentity
from strandline.jobs.landing.transactions import CommittedOffset, OffsetUnstable
from strandline.kafka.clients import BrokerErrors, ClientOptions, create_client
from strandline.kafka.error_mapping import error_of, mapped_error
from strandline.kafka.errors import LogUnreachable

OFFSET_PARTITION = 0
"""The offset is that of the topic's first partition, which always exists: brokers refuse one of a partition that does
not.
"""
_RETENTION = "offsets.retention.minutes"
_MINUTE_MS = 60_000
# The library keeps the time itself, and its error says more; but nothing here may wait for ever.
_SLACK_S = 0.5


class KafkaGroups:
    """The groups of parts, and what else is asked of the brokers beside a producer. For any thread. Close it."""

    def __init__(self, options: ClientOptions, topic: str, clock: Clock) -> None:
        self._topic = topic
        self._client = create_client(AdminClient, {**options, "error_cb": BrokerErrors(topic, clock).on_error})
        self._closed = False
        self._retention_ms: int | None = None

    def require_topic(self, timeout: float) -> None:
        """Raises `TopicMissing`. Unlike a producer's question, this one never makes the brokers create the topic."""
        answer = self._client.describe_topics(TopicCollection([self._topic]), request_timeout=timeout)[self._topic]
        self._result(answer, f"topic {self._topic} can't be looked up", timeout)

    def committed(self, part: PartIdentity, timeout: float) -> CommittedOffset | None:
        """The stable offset of the part's group."""
        what = f"the offset of the consumer group {part.name} can't be read"
        wanted = ConsumerGroupTopicPartitions(part.name, [TopicPartition(self._topic, OFFSET_PARTITION)])
        answers = self._client.list_consumer_group_offsets([wanted], require_stable=True, request_timeout=timeout)
        (place,) = self._result(answers[part.name], what, timeout, part).topic_partitions
        if place.error is not None:
            # For an offset that is not stable the library raises nothing, but leaves the error here.
            if place.error.code() == KafkaError.UNSTABLE_OFFSET_COMMIT:
                raise OffsetUnstable(f"{what}: {place.error.str()}")
            raise self._explain(place.error, what, part)
        return CommittedOffset(place.offset, place.metadata or "") if place.offset >= 0 else None

    def offset_retention_ms(self, timeout: float) -> int:
        """The shortest time that any broker keeps offsets for: which one keeps a group's may change. Asked once: a
        broker has to be restarted to have another.
        """
        if self._retention_ms is None:
            self._retention_ms = self._shortest_retention_ms(timeout)
        return self._retention_ms

    def delete(self, part: PartIdentity, timeout: float) -> None:
        """Delete the part's group, if there is one."""
        answer = self._client.delete_consumer_groups([part.name], request_timeout=timeout)[part.name]
        with self._explained(f"the consumer group {part.name} can't be deleted", part):
            try:
                answer.result(timeout + _SLACK_S)
            except KafkaException as failure:
                if error_of(failure).code() != KafkaError.GROUP_ID_NOT_FOUND:
                    raise

    def close(self) -> None:
        """Let go of the connection. Not left to the garbage collector: one of the client's own threads could run it."""
        if not self._closed:
            self._closed = True
            self._client.__exit__(None, None, None)

    def _shortest_retention_ms(self, timeout: float) -> int:
        what = "the brokers' settings can't be read"
        cluster = self._result(self._client.describe_cluster(request_timeout=timeout), what, timeout)
        brokers = [ConfigResource(ResourceType.BROKER, str(node.id)) for node in cluster.nodes]
        answers = self._client.describe_configs(brokers, request_timeout=timeout)
        minutes = [int(self._result(answer, what, timeout)[_RETENTION].value) for answer in answers.values()]
        return min(minutes) * _MINUTE_MS

    def _result(self, answer: "Future[Any]", what: str, timeout: float, part: PartIdentity | None = None) -> Any:
        with self._explained(what, part):
            return answer.result(timeout + _SLACK_S)

    @contextmanager
    def _explained(self, what: str, part: PartIdentity | None = None) -> Iterator[None]:
        try:
            yield
        except KafkaException as failure:
            raise self._explain(error_of(failure), what, part) from failure
        except TimeoutError as failure:
            raise LogUnreachable(f"{what}: the brokers have not answered", remedy="Check that they run") from failure

    def _explain(self, error: KafkaError, what: str, part: PartIdentity | None) -> StrandlineError:
        return mapped_error(error, what, self._topic, rights(self._topic, part))
