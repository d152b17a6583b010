"""The fixtures of tests of `PartitionLog`: a partition, the operations of others on it, and its readers."""

from typing import Protocol

from confluent_kafka import ConsumerGroupTopicPartitions

from strandline.clock import ManualClock
from strandline.node.shard.kafka_log import KafkaLog
from strandline.node.shard.log import EndsRequest, LogEnds, PartitionLog, Records
from strandline.node.shard.memory_log import MemoryLog
from support.real_kafka import TIMEOUT, TemporaryTopic, eventually, unused_address

DATASET = "contract"
POLL_S = 0.2


class Transaction(Protocol):
    def append(self, value: bytes, time: int, *, times_checked: bool = False) -> int: ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...


class Partition(Protocol):
    """`log` is a reader of it; `gone` is one whose brokers are unreachable."""

    log: PartitionLog

    def append(self, value: bytes, time: int, *, times_checked: bool = False) -> int: ...

    def begin(self) -> Transaction: ...

    def delete_before(self, offset: int) -> None: ...

    def recreate(self) -> None: ...

    def mirrored(self, offset: int) -> bool:
        """Whether this offset is eventually mirrored."""
        ...

    def gone(self) -> PartitionLog: ...

    def close(self) -> None: ...


class MemoryPartition:
    def __init__(self) -> None:
        self.log = MemoryLog(ManualClock())
        self.append, self.begin = self.log.append, self.log.begin
        self.delete_before, self.recreate = self.log.delete_before, self.log.recreate

    def mirrored(self, offset: int) -> bool:
        return self.log.mirrored == offset

    def gone(self) -> PartitionLog:
        self.log.reachable = False
        return self.log

    def close(self) -> None:
        self.log.close()


class KafkaPartition:
    def __init__(self, bootstrap: str) -> None:
        self._client = {"bootstrap.servers": bootstrap}
        self._topic = TemporaryTopic(self._client)
        self.append, self.begin = self._topic.append, self._topic.begin
        self.delete_before, self.recreate = self._topic.delete_before, self._topic.recreate
        self.log = self._reader(self._client)
        self._away: KafkaLog | None = None

    def mirrored(self, offset: int) -> bool:
        group = f"strandline-{DATASET}"

        def there() -> bool:
            wanted = ConsumerGroupTopicPartitions(group)
            found = self._topic.admin.list_consumer_group_offsets([wanted])[group].result(90)
            return (self._topic.name, 0, offset) in {(p.topic, p.partition, p.offset) for p in found.topic_partitions}

        eventually(there)
        return True

    def gone(self) -> PartitionLog:
        self._away = self._reader({"bootstrap.servers": unused_address(), "socket.timeout.ms": 500})
        return self._away

    def close(self) -> None:
        self.log.close()
        if self._away is not None:
            self._away.close()

    def _reader(self, options: dict[str, str | int | bool]) -> KafkaLog:
        return KafkaLog(options, dataset=DATASET, topic=self._topic.name, partition=0, watch_every=0.2)


def read_on(log: PartitionLog, *, most: int = 100) -> list[Records]:
    """Read until the position is the last stable offset, which must be reached."""
    target = log.ends().last_stable
    read = []
    for _ in range(round(TIMEOUT / POLL_S)):
        records = log.poll(most, POLL_S)
        if len(records):
            read.append(records)
        if records.position >= target:
            return read
    raise AssertionError(f"the position is still {records.position}, and should be {target}")


def answered(question: EndsRequest) -> LogEnds:
    """The answer, once it has arrived."""
    eventually(lambda: question.answer() is not None)
    ends = question.answer()
    assert ends is not None
    return ends


def values(batches: list[Records]) -> list[bytes]:
    return [value for batch in batches for value in batch.values]


def offsets(batches: list[Records]) -> list[int]:
    return [int(offset) for batch in batches for offset in batch.offsets]
