"""What the brokers say of a dataset's topic, as far as offsets and hours depend on it."""

from dataclasses import dataclass
from typing import Protocol

from confluent_kafka import IsolationLevel

from strandline.kafka.clients import ClientOptions
from strandline.node.shard.kafka_admin import KafkaAdmin
from strandline.node.shard.kafka_topics import retention_of
from strandline.recovery.log_ends import LogEnds


@dataclass(frozen=True, slots=True)
class TopicNow:
    """Which topic it is, how many partitions it has, and for how long it keeps records, in milliseconds by time; None
    for ever.
    """

    topic_id: str
    partitions: int
    retention_ms: int | None


class Topic(Protocol):
    """One topic, asked anew each time. Raises `LogUnreachable` where the brokers don't answer."""

    def now(self) -> TopicNow:
        """What holds for the whole topic."""
        ...

    def ends(self, partition: int) -> LogEnds:
        """Where a partition begins and ends."""
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...


class KafkaTopic:
    """The `Topic` at real brokers."""

    def __init__(self, options: ClientOptions, topic: str) -> None:
        self._admin = KafkaAdmin(options, topic)

    def now(self) -> TopicNow:
        identity = self._admin.identity()
        return TopicNow(identity.topic_id, identity.partitions, retention_of(self._admin.settings()))

    def ends(self, partition: int) -> LogEnds:
        # In this order, so that start <= last_stable <= high however fast the log moves.
        start = self._admin.start(partition)
        last_stable = self._admin.end(partition, IsolationLevel.READ_COMMITTED)
        return LogEnds(start, last_stable, self._admin.end(partition, IsolationLevel.READ_UNCOMMITTED))

    def close(self) -> None:
        self._admin.close()
