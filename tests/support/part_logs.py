"""The fixtures of tests of `PartLog`: brokers, real or in memory, their clients, and what committed readers see."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any, Protocol

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from strandline.clock import Clock, ManualClock, SystemClock
from strandline.jobs.landing.kafka_part_log import KafkaTransactions
from strandline.jobs.landing.memory_part_log import MemoryCluster, MemoryTransactions
from strandline.jobs.landing.packing import PackedRecord, pack
from strandline.jobs.landing.part_log import PartLog
from strandline.jobs.landing.progress import Landed, PartIdentity, Progress
from strandline.jobs.landing.transactions import PartTransactions
from strandline.time_range import ALL_TIMES
from strandline.wire.decode import Limits, decode_batch
from strandline.wire.record_headers import CHUNK_HEADER, JOB_HEADER, PART_HEADER
from support.gateway_topics import GatewayTopic
from support.real_kafka import TIMEOUT, eventually, unused_address
from support.sample_blocks import block_of

PARTITIONS = 3
PATIENCE_S = 60.0

Chunk = tuple[str, int, int]
"""A job, a part of it, and a chunk of the part."""
StoredHeaders = Mapping[str, bytes]
Hooks = Mapping[str, Callable[[], None]]


class Killed(BaseException):
    """The process ends here. Not caught by any `except` for errors."""


def kill() -> None:
    raise Killed


class HookedTransactions:
    """Forwards calls. `before` and `after` are called around those that they name."""

    def __init__(self, inner: PartTransactions, before: Hooks, after: Hooks) -> None:
        self._inner, self._before, self._after = inner, before, after

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._inner, name)

        def hooked(*arguments: Any) -> Any:
            self._before.get(name, _nothing)()
            result = call(*arguments)
            self._after.get(name, _nothing)()
            return result

        return hooked


def _nothing() -> None:
    pass


class CountingClock:
    """Counts the sleeps on another clock."""

    def __init__(self, inner: Clock) -> None:
        self._inner, self.sleeps = inner, 0
        self.now_ms, self.monotonic = inner.now_ms, inner.monotonic

    def sleep(self, seconds: float) -> None:
        self.sleeps += 1
        self._inner.sleep(seconds)


class World(Protocol):
    """Brokers with a topic, and the clock of all clients."""

    clock: CountingClock

    def open_log(self, before: Hooks = ..., after: Hooks = ...) -> PartLog: ...

    def transactions(self) -> PartTransactions: ...

    def unreachable(self) -> PartLog: ...

    def without_topic(self) -> PartLog: ...

    def grow(self, partitions: int) -> None: ...

    def committed(self) -> list[tuple[int, bytes, StoredHeaders]]:
        """Partition, value and headers of each record that committed readers see, once no transaction is open."""
        ...


class MemoryWorld:
    def __init__(self) -> None:
        self.clock = CountingClock(ManualClock())
        self.cluster = MemoryCluster(self.clock, PARTITIONS)
        self.grow = self.cluster.grow

    def transactions(self) -> PartTransactions:
        return MemoryTransactions(self.cluster)

    def open_log(self, before: Hooks | None = None, after: Hooks | None = None) -> PartLog:
        return PartLog(HookedTransactions(self.transactions(), before or {}, after or {}), self.clock)

    def unreachable(self) -> PartLog:
        self.cluster.reachable = False
        return self.open_log()

    def without_topic(self) -> PartLog:
        self.cluster.has_topic = False
        return self.open_log()

    def committed(self) -> list[tuple[int, bytes, StoredHeaders]]:
        found = [
            (partition, record.value, dict(record.headers))
            for partition, records in self.cluster.read().items()
            for record in records
        ]
        assert not any(record.is_open for records in self.cluster.partitions for record in records)
        return found


class KafkaWorld:
    def __init__(self, bootstrap: str, opened: ExitStack) -> None:
        self.clock = CountingClock(SystemClock())
        self.topic = GatewayTopic(bootstrap, PARTITIONS)
        self.grow = self.topic.grow
        self._opened = opened

    def transactions(self) -> PartTransactions:
        return self._opened.enter_context(closing(KafkaTransactions(self.topic.client, self.topic.name, self.clock)))

    def open_log(self, before: Hooks | None = None, after: Hooks | None = None) -> PartLog:
        return PartLog(HookedTransactions(self.transactions(), before or {}, after or {}), self.clock)

    def unreachable(self) -> PartLog:
        client = {"bootstrap.servers": unused_address(), "log_level": 0}
        return PartLog(
            self._opened.enter_context(closing(KafkaTransactions(client, self.topic.name, self.clock))), self.clock
        )

    def without_topic(self) -> PartLog:
        client = KafkaTransactions(self.topic.client, f"no-{self.topic.name}", self.clock)
        return PartLog(self._opened.enter_context(closing(client)), self.clock)

    def committed(self) -> list[tuple[int, bytes, StoredHeaders]]:
        return committed_records(self.topic)


class ReadTopic(Protocol):
    """A topic at the brokers that `client` names."""

    name: str
    client: Mapping[str, Any]
    admin: AdminClient

    def partitions(self) -> int: ...


def committed_records(topic: ReadTopic) -> list[tuple[int, bytes, StoredHeaders]]:
    """Read a topic as its readers do, once each transaction has its marker."""
    places = [TopicPartition(topic.name, number, 0) for number in range(topic.partitions())]
    eventually(lambda: _ends(topic, places, committed=True) == _ends(topic, places, committed=False))
    options = {"group.id": "reads", "enable.auto.commit": False, "enable.partition.eof": True, "fetch.wait.max.ms": 20}
    found, at_end = [], set[int]()
    with closing(Consumer({**topic.client, **options, "isolation.level": "read_committed"})) as consumer:
        consumer.assign(places)
        while len(at_end) < len(places):
            message = consumer.poll(TIMEOUT)
            assert message is not None
            error = message.error()
            if error is None:
                found.append((message.partition(), message.value(), dict(message.headers() or ())))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                at_end.add(message.partition())
    return found


def _ends(topic: ReadTopic, places: list[TopicPartition], *, committed: bool) -> list[int] | object:
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    answers = topic.admin.list_offsets({place: OffsetSpec.latest() for place in places}, isolation_level=level)
    try:
        return [answers[place].result(TIMEOUT).offset for place in places]
    except KafkaException:
        # A newly added partition may have no leader yet.
        return object()


def samples_by_chunk(records: Iterable[tuple[int, bytes, StoredHeaders]]) -> Counter[Chunk]:
    """The number of samples of each chunk in the topic. A node would not show duplicates, because it merges equal
    samples.
    """
    found = Counter[Chunk]()
    for _, value, headers in records:
        chunk = headers[JOB_HEADER].decode(), int(headers[PART_HEADER]), int(headers[CHUNK_HEADER])
        found[chunk] += len(decode_batch([value], Limits()).time)
    return found


def samples(world: World, part: PartIdentity) -> dict[int, int]:
    """The visible samples of each of a part's chunks, in a world where nothing else has landed."""
    found = samples_by_chunk(world.committed())
    assert {(job, number) for job, number, _ in found} <= {(part.job, part.part)}
    return {chunk: count for (_, _, chunk), count in sorted(found.items())}


def records_of(chunk: int, samples: int = 10, partitions: int = PARTITIONS) -> Sequence[PackedRecord]:
    """The records of a chunk with this many samples, of as many series."""
    series = [[("__name__", "up"), ("chunk", str(chunk)), ("series", str(number))] for number in range(samples)]
    block = block_of(series, [(number, 1_700_000_000_000 + number, float(number)) for number in range(samples)])
    return pack(block, partitions, ALL_TIMES).records


def begin(log: PartLog, part: PartIdentity, first_begun_ms: int | None = None) -> Landed:
    return log.begin(part, first_begun_ms=first_begun_ms, deadline=_deadline(log))


def land(log: PartLog, chunk: int, samples: int = 10, partitions: int = PARTITIONS) -> None:
    """Land a chunk whose progress follows from its number."""
    log.land(chunk, records_of(chunk, samples, partitions), progress_behind(chunk), _deadline(log))


def partitions_of(log: PartLog) -> int:
    return log.partitions(_deadline(log))


def progress_behind(chunk: int) -> Progress:
    return Progress(1_000 * (chunk + 1), (10 * (chunk + 1), 0, chunk))


def landed(chunks: int) -> Landed:
    """What is expected to be found after this many chunks."""
    return Landed(chunks, progress_behind(chunks - 1)) if chunks else Landed()


def _deadline(log: PartLog) -> float:
    return log._clock.monotonic() + PATIENCE_S
