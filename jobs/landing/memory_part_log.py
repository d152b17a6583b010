"""Kafka's transactions in memory: for simulations, and for tests without servers.

`MemoryCluster` models the brokers: a topic, the holders of transactional ids, and the offsets of groups. Like Kafka, it
fences former holders, aborts their open transactions, ends transactions that take too long, hides records after an open
transaction, and expires old offsets. `MemoryTransactions` is a client of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from zlib import crc32

from strandline.clock import Clock
from strandline.jobs.landing.progress import PartIdentity
from strandline.jobs.landing.transactions import (
    BY_KEY,
    TRANSACTION_TIMEOUT_S,
    CommittedOffset,
    LandingUnknown,
    OffsetUnstable,
    PartFenced,
    Record,
    RecordsRefused,
)
from strandline.kafka.errors import KafkaRefused, LogUnreachable, TopicMissing
from strandline.wire.record_headers import RecordHeaders

_MAX_METADATA = 4_095


@dataclass(slots=True)
class MemoryRecord:
    """A record of the topic. Readers see it once its transaction is committed, and skip it if that was aborted."""

    value: bytes
    headers: RecordHeaders
    time_ms: int
    key: bytes | None = None
    is_open: bool = True
    is_committed: bool = False


@dataclass(slots=True)
class _Transaction:
    """An open transaction."""

    begun: float
    records: list[MemoryRecord] = field(default_factory=list)
    offset: CommittedOffset | None = None


@dataclass(slots=True)
class _Holder:
    """The newest epoch of a transactional id, whose holder alone may use it."""

    epoch: int = 0
    transaction: _Transaction | None = None


@dataclass(slots=True)
class _GroupOffset:
    committed: CommittedOffset
    committed_ms: int
    unstable_reads: int


class MemoryCluster:
    """The brokers and their one topic."""

    def __init__(self, clock: Clock, partitions: int = 3) -> None:
        self.reachable = True
        """While False, no request is answered."""
        self.refuses = False
        """While True, every request fails for lack of permission."""
        self.refuses_records = False
        """While True, records are too large for the topic."""
        self.has_topic = True
        self.retention_ms = 7 * 24 * 3_600_000
        """After this time a group's offset expires."""
        self.unstable_reads = 0
        """How many reads of an offset after a commit find it unstable."""
        self.lost_answers = 0
        """The answers to this number of commits from now on are lost, after they took effect."""
        self.partitions: list[list[MemoryRecord]] = [[] for _ in range(partitions)]
        self.clock = clock
        self._holders: dict[str, _Holder] = {}
        self._offsets: dict[str, _GroupOffset] = {}

    # Operations of administrators and readers.

    def grow(self, partitions: int) -> None:
        """Add partitions."""
        self.partitions.extend([] for _ in range(len(self.partitions), partitions))

    def read(self) -> dict[int, list[MemoryRecord]]:
        """The records that a reader of committed records sees now, by partition."""
        self._end_overdue()
        return {number: list(_visible(records)) for number, records in enumerate(self.partitions)}

    # Requests of clients.

    def fence(self, name: str) -> int:
        """Fence the holder of a transactional id. Returns the epoch of the new one."""
        self._require_answers()
        holder = self._holders.setdefault(name, _Holder())
        self._end(name, commit=False)
        holder.epoch += 1
        return holder.epoch

    def offset(self, name: str) -> CommittedOffset | None:
        """The stable offset of a group."""
        self._require_answers()
        holder, kept = self._holders.get(name), self._offsets.get(name)
        if holder and holder.transaction and holder.transaction.offset:
            raise OffsetUnstable(f"a transaction with an offset of the group {name} is open")
        if kept is None:
            return None
        if self.clock.now_ms() - kept.committed_ms > self.retention_ms:
            del self._offsets[name]
            return None
        if kept.unstable_reads > 0:
            kept.unstable_reads -= 1
            raise OffsetUnstable(f"the markers of a transaction of the group {name} are not written yet")
        return kept.committed

    def delete_group(self, name: str) -> None:
        """Delete the offset of a group."""
        self._require_answers()
        self._offsets.pop(name, None)

    def count_partitions(self) -> int:
        """The number of partitions."""
        self._require_answers()
        return len(self.partitions)

    def offset_retention_ms(self) -> int:
        """How long offsets are kept."""
        self._require_answers()
        return self.retention_ms

    def append(self, name: str, epoch: int, records: Sequence[Record], headers: RecordHeaders) -> None:
        """Put records into the holder's transaction."""
        transaction = self._transaction_of(name, epoch)
        if self.refuses_records:
            raise RecordsRefused("the cluster in memory was made to refuse records", remedy="Raise max.message.bytes")
        for record in records:
            stored = MemoryRecord(record.value, [*headers, *record.headers], self.clock.now_ms(), record.key)
            # Not the partition that Kafka would choose for the key, but always the same one.
            by_key = crc32(record.key or b"") % len(self.partitions)
            self.partitions[by_key if record.partition == BY_KEY else record.partition].append(stored)
            transaction.records.append(stored)

    def put_offset(self, name: str, epoch: int, offset: CommittedOffset) -> None:
        """Put the group's offset into the holder's transaction."""
        if len(offset.metadata) > _MAX_METADATA:
            raise LogUnreachable(f"metadata of {len(offset.metadata)} characters is refused")
        self._transaction_of(name, epoch).offset = offset

    def end(self, name: str, epoch: int, *, commit: bool) -> None:
        """Commit the holder's transaction, or abort it."""
        self._require_answers()
        self._require_holder(name, epoch)
        self._end(name, commit=commit)
        if commit and self.lost_answers > 0:
            self.lost_answers -= 1
            raise LogUnreachable("the answer to a commit was lost")

    def _transaction_of(self, name: str, epoch: int) -> _Transaction:
        """The open transaction. As in Kafka, its first request opens it."""
        self._require_answers()
        self._require_holder(name, epoch)
        holder = self._holders[name]
        holder.transaction = holder.transaction or _Transaction(self.clock.monotonic())
        return holder.transaction

    def _require_holder(self, name: str, epoch: int) -> None:
        if self._holders[name].epoch != epoch:
            raise PartFenced(f"the transactional id {name} has a newer holder, or its transaction took too long")

    def _end_overdue(self) -> None:
        for name, holder in self._holders.items():
            begun = holder.transaction.begun if holder.transaction else None
            if begun is not None and self.clock.monotonic() - begun > TRANSACTION_TIMEOUT_S:
                self._end(name, commit=False)
                holder.epoch += 1

    def _end(self, name: str, *, commit: bool) -> None:
        """End the open transaction, if there is one."""
        holder = self._holders[name]
        transaction, holder.transaction = holder.transaction, None
        if transaction is None:
            return
        for record in transaction.records:
            record.is_open, record.is_committed = False, commit
        if commit and transaction.offset is not None:
            self._offsets[name] = _GroupOffset(transaction.offset, self.clock.now_ms(), self.unstable_reads)

    def _require_answers(self) -> None:
        self._end_overdue()
        if not self.reachable:
            raise LogUnreachable("the cluster in memory was made unreachable")
        if self.refuses:
            raise KafkaRefused("the cluster in memory was made to refuse requests", remedy="Grant the permission")
        if not self.has_topic:
            raise TopicMissing("the cluster in memory has no topic", remedy="Create it")


def _visible(records: list[MemoryRecord]) -> Iterator[MemoryRecord]:
    for record in records:
        if record.is_open:
            return
        if record.is_committed:
            yield record


class MemoryTransactions:
    """The `PartTransactions` of a cluster in memory."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self._name, self._epoch = "", 0

    def hold(self, part: PartIdentity, timeout: float) -> None:  # noqa: ARG002 - answered immediately
        self._cluster.count_partitions()
        self._name, self._epoch = part.name, self._cluster.fence(part.name)

    def committed(self, part: PartIdentity, timeout: float) -> CommittedOffset | None:  # noqa: ARG002
        return self._cluster.offset(part.name)

    def partitions(self, timeout: float) -> int:  # noqa: ARG002
        return self._cluster.count_partitions()

    def begin(self) -> None:
        pass

    def send(self, records: Sequence[Record], headers: RecordHeaders, timeout: float) -> None:  # noqa: ARG002
        self._cluster.append(self._name, self._epoch, records, headers)

    def send_offset(self, offset: int, metadata: str, timeout: float) -> None:  # noqa: ARG002
        self._cluster.put_offset(self._name, self._epoch, CommittedOffset(offset, metadata))

    def commit(self, timeout: float) -> None:  # noqa: ARG002
        try:
            self._cluster.end(self._name, self._epoch, commit=True)
        except LogUnreachable as error:
            raise LandingUnknown(f"it is unknown whether a chunk has landed: {error.message}") from error

    def abort(self, timeout: float) -> None:  # noqa: ARG002
        self._cluster.end(self._name, self._epoch, commit=False)

    def offset_retention_ms(self, timeout: float) -> int:  # noqa: ARG002
        return self._cluster.offset_retention_ms()

    def delete_group(self, part: PartIdentity, timeout: float) -> None:  # noqa: ARG002
        self._cluster.delete_group(part.name)

    def close(self) -> None:
        pass
