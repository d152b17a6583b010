"""Topics with several partitions at real brokers: created, extended, deleted, and read completely."""

from contextlib import closing

from confluent_kafka import Consumer, IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from confluent_kafka.cimpl import NewPartitions

from strandline.kafka.error_mapping import error_of
from strandline.node.shard.kafka_errors import NO_LEADER, meaning
from strandline.node.shard.kafka_topics import create_topic
from strandline.node.shard.log import LogUnreachable
from support.real_kafka import TIMEOUT, eventually, fresh_topic


class GatewayTopic:
    def __init__(self, bootstrap: str, partitions: int = 3, *, make: bool = True) -> None:
        self.name, self.bootstrap = fresh_topic(), bootstrap
        self.client = {"bootstrap.servers": bootstrap, "log_level": 0}
        self.admin = AdminClient(self.client)
        if make:
            self.make(partitions)

    def make(self, partitions: int) -> None:
        assert create_topic(self.client, self.name, partitions=partitions, replication=1, retention_ms=None)

    def grow(self, partitions: int) -> None:
        self.admin.create_partitions([NewPartitions(self.name, partitions)])[self.name].result(TIMEOUT)

    def delete(self) -> None:
        self.admin.delete_topics([self.name])[self.name].result(TIMEOUT)

    def partitions(self) -> int:
        return len(self.admin.list_topics(self.name, timeout=TIMEOUT).topics[self.name].partitions)

    def read(self) -> dict[int, list[bytes]]:
        """All current records, by partition."""
        ends: dict[int, int] = {}
        eventually(lambda: ends.update(self._ends()) or bool(ends))
        found: dict[int, list[bytes]] = {number: [] for number in ends}
        consumer = Consumer({**self.client, "group.id": "reads", "enable.auto.commit": False})
        with closing(consumer):
            consumer.assign([TopicPartition(self.name, number, 0) for number, end in ends.items() if end > 0])
            left = {number for number, end in ends.items() if end > 0}
            while left:
                message = consumer.poll(TIMEOUT)
                assert message is not None, f"nothing came from partitions {left} of {self.name}"
                assert message.error() is None, message.error()
                found[message.partition()].append(message.value())
                if message.offset() == ends[message.partition()] - 1:
                    left.remove(message.partition())
        return found

    def _ends(self) -> dict[int, int]:
        """The ends of all partitions; none while a broker that was suspended can't answer yet."""
        places = [TopicPartition(self.name, number) for number in range(self.partitions())]
        answers = self.admin.list_offsets(
            {place: OffsetSpec.latest() for place in places}, isolation_level=IsolationLevel.READ_COMMITTED
        )
        try:
            return {place.partition: answer.result(TIMEOUT).offset for place, answer in answers.items()}
        except KafkaException as error:
            cause = error_of(error)
            if cause.code() == NO_LEADER or isinstance(meaning(cause, "asking for ends", self.name), LogUnreachable):
                return {}
            raise
