"""The consumer group of a part in Kafka: reading its offset, the retention of offsets, and deleting the group.

The group never has a member. It is read with the admin client, because a consumer's `committed` blocks while the offset
is unstable, which looks the same as brokers that don't answer.
"""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

# From the modules that define them: the public module imports them without re-exporting them.
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from strandline.clock import Clock
from strandline.errors import StrandlineError
from strandline.jobs.landing.kafka_acls import acl_remedies
from strandline.jobs.landing.progress import PartIdentity
from strandline.jobs.landing.transactions import CommittedOffset, OffsetUnstable
from strandline.kafka.clients import BrokerErrors, ClientOptions, create_client
from strandline.kafka.error_mapping import error_of, mapped_error
from strandline.kafka.errors import LogUnreachable

OFFSET_PARTITION = 0
"""The group's offset is for the topic's first partition, because brokers reject offsets of missing partitions."""
_RETENTION = "offsets.retention.minutes"
_MINUTE_MS = 60_000
# The library applies the timeout itself, with a better error. This is the limit in case it does not.
_EXTRA_WAIT_S = 0.5


class KafkaGroups:
    """The groups of parts, and all other requests that need no producer. Thread-safe. Must be closed."""

    def __init__(self, options: ClientOptions, topic: str, clock: Clock) -> None:
        self._topic = topic
        self._client = create_client(AdminClient, {**options, "error_cb": BrokerErrors(topic, clock).on_error})
        self._closed = False
        self._retention_ms: int | None = None

    def require_topic(self, timeout: float) -> None:
        """Raises `TopicMissing`. Unlike the metadata request of a producer, this never creates the topic."""
        answer = self._client.describe_topics(TopicCollection([self._topic]), request_timeout=timeout)[self._topic]
        self._result(answer, f"topic {self._topic} can't be looked up", timeout)

    def committed(self, part: PartIdentity, timeout: float) -> CommittedOffset | None:
        """The stable offset of the part's group."""
        what = f"the offset of the consumer group {part.name} can't be read"
        wanted = ConsumerGroupTopicPartitions(part.name, [TopicPartition(self._topic, OFFSET_PARTITION)])
        answers = self._client.list_consumer_group_offsets([wanted], require_stable=True, request_timeout=timeout)
        (offset,) = self._result(answers[part.name], what, timeout, part).topic_partitions
        if offset.error is not None:
            # The library returns this error here instead of raising it.
            if offset.error.code() == KafkaError.UNSTABLE_OFFSET_COMMIT:
                raise OffsetUnstable(f"{what}: {offset.error.str()}")
            raise self._explain(offset.error, what, part)
        return CommittedOffset(offset.offset, offset.metadata or "") if offset.offset >= 0 else None

    def offset_retention_ms(self, timeout: float) -> int:
        """The shortest retention of offsets over all brokers, because any of them may become the group's coordinator.
        Read once, because brokers only change it with a restart.
        """
        if self._retention_ms is None:
            self._retention_ms = self._shortest_retention_ms(timeout)
        return self._retention_ms

    def delete(self, part: PartIdentity, timeout: float) -> None:
        """Delete the part's group, if it exists."""
        answer = self._client.delete_consumer_groups([part.name], request_timeout=timeout)[part.name]
        with self._explained(f"the consumer group {part.name} can't be deleted", part):
            try:
                answer.result(timeout + _EXTRA_WAIT_S)
            except KafkaException as failure:
                if error_of(failure).code() != KafkaError.GROUP_ID_NOT_FOUND:
                    raise

    def close(self) -> None:
        """Close the connection. Without this, the garbage collector might, in one of the client's own threads."""
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
            return answer.result(timeout + _EXTRA_WAIT_S)

    @contextmanager
    def _explained(self, what: str, part: PartIdentity | None = None) -> Iterator[None]:
        try:
            yield
        except KafkaException as failure:
            raise self._explain(error_of(failure), what, part) from failure
        except TimeoutError as failure:
            raise LogUnreachable(f"{what}: the brokers have not answered", remedy="Check that they run") from failure

    def _explain(self, error: KafkaError, what: str, part: PartIdentity | None) -> StrandlineError:
        return mapped_error(error, what, self._topic, acl_remedies(self._topic, part))
