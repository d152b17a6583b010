"""The facts about a dataset's topic on which offsets and readiness depend, read from the brokers."""

from dataclasses import dataclass
from typing import Protocol

from confluent_kafka import IsolationLevel

from strandline.kafka.clients import ClientOptions
from strandline.node.shard.kafka_admin import KafkaAdmin
from strandline.node.shard.kafka_topics import retention_of
from strandline.recovery.log_ends import LogEnds


@dataclass(frozen=True, slots=True)
class TopicNow:
    """The topic's id, its number of partitions, and its retention in milliseconds; None if unlimited."""

    topic_id: str
    partitions: int
    retention_ms: int | None


class Topic(Protocol):
    """One topic. Every call sends a request to the brokers. Raises `LogUnreachable` if they don't answer."""

    def now(self) -> TopicNow:
        """The current facts about the topic."""
        ...

    def ends(self, partition: int) -> LogEnds:
        """The start and end offsets of a partition."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class KafkaTopic:
    """The `Topic` in Kafka."""

    def __init__(self, options: ClientOptions, topic: str) -> None:
        self._admin = KafkaAdmin(options, topic)

    def now(self) -> TopicNow:
        identity = self._admin.identity()
        return TopicNow(identity.topic_id, identity.partitions, retention_of(self._admin.settings()))

    def ends(self, partition: int) -> LogEnds:
        # In this order, so that start <= last_stable <= high while the log moves.
        start = self._admin.start(partition)
        last_stable = self._admin.end(partition, IsolationLevel.READ_COMMITTED)
        return LogEnds(start, last_stable, self._admin.end(partition, IsolationLevel.READ_UNCOMMITTED))

    def close(self) -> None:
        self._admin.close()
