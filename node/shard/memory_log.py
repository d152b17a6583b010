"""In-memory implementations of Kafka's partition and dead-letter topic, for simulations and for tests without servers.

`MemoryLog` is both the partition, with the operations of producers and administrators, and its only reader. For the
reader it behaves like Kafka: transactions have invisible offsets, the start of the log moves, the topic is deleted and
recreated, the brokers are unreachable.
"""

from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from strandline.clock import Clock, wait_until
from strandline.node.shard.log import DeadLetterCounts, LogEnds, LogUnreachable, OffsetGone, Records, TopicUnfit


@dataclass(slots=True)
class _Entry:
    """The content of an offset: a record, or a transaction's marker, which is invisible."""

    time: int
    value: bytes
    visible: bool
    times_checked: bool = False
    leader_epoch: int = 0


@dataclass(slots=True)
class _Partition:
    """The state at the brokers, from the creation of the topic to its deletion."""

    entries: list[_Entry] = field(default_factory=list)
    start: int = 0
    opened: dict[int, int] = field(default_factory=dict)
    """The first offset of each open transaction."""

    def put(self, entry: _Entry) -> int:
        self.entries.append(entry)
        return len(self.entries) - 1

    def ends(self) -> LogEnds:
        high = len(self.entries)
        return LogEnds(self.start, max(self.start, min(self.opened.values(), default=high)), high)

    def visible(self, start: int, end: int, max_records: int) -> list[int]:
        """The offsets of the first visible records in a range of stable offsets."""
        if start >= end:
            return []
        stable = range(start, end)
        return list(islice((offset for offset in stable if self.entries[offset].visible), max_records))


class MemoryTransaction:
    """Records that are invisible until `commit`. `commit` and `abort` end it with a marker, which has an offset."""

    def __init__(self, partition: _Partition) -> None:
        """Created by `MemoryLog.begin`."""
        self._partition = partition
        self._entries: list[_Entry] = []

    def append(self, value: bytes, time: int, *, times_checked: bool = False) -> int:
        """Append a record. Returns its offset."""
        entry = _Entry(time, value, visible=False, times_checked=times_checked)
        offset = self._partition.put(entry)
        self._partition.opened.setdefault(id(self), offset)
        self._entries.append(entry)
        return offset

    def commit(self) -> None:
        """Make its records visible."""
        for entry in self._entries:
            entry.visible = True
        self._end()

    def abort(self) -> None:
        """End it. Its records are never visible."""
        self._end()

    def _end(self) -> None:
        # A transaction without records has no partition, and gets no marker.
        if self._partition.opened.pop(id(self), None) is not None:
            self._partition.put(_Entry(self._entries[-1].time, b"", visible=False))
        self._entries = []


class MemoryEndsRequest:
    """An `EndsRequest`. Its answer is as of the time of the request, and available at once unless the brokers hang."""

    def __init__(self, log: "MemoryLog", ends: LogEnds) -> None:
        """Created by `MemoryLog.request_ends`."""
        self._log, self._ends = log, ends

    def answer(self) -> LogEnds | None:
        self._log.require_reachable()
        return None if self._log.hangs else self._ends


class MemoryLog:
    """The `PartitionLog` of a partition that is stored in this object. After `close`, it can be reused with `seek`."""

    def __init__(self, clock: Clock | None = None) -> None:
        """A poll that finds nothing waits on `clock`; without one it returns at once."""
        self.reachable = True
        """While False, every request raises `LogUnreachable`."""
        self.hangs = False
        """While True, no request is answered, as with a hanging broker. Prefetched records can be read."""
        self.mirrored: int | None = None
        """The last mirrored offset."""
        self._clock = clock
        self._partition = _Partition()
        self._generation = 1
        self._expected: str | None = None
        self._position: int | None = None

    # The operations of producers and administrators.

    def append(self, value: bytes, time: int, *, times_checked: bool = False) -> int:
        """Append a record, and return its offset. `times_checked`: the producer has checked its samples' times."""
        return self._partition.put(_Entry(time, value, visible=True, times_checked=times_checked))

    def begin(self) -> MemoryTransaction:
        """Begin a transaction. It is open from its first record on, and readers stop there."""
        return MemoryTransaction(self._partition)

    def delete_before(self, offset: int) -> None:
        """Move the start of the log to this offset, as retention does. It never moves back."""
        self._partition.start = max(self._partition.start, min(offset, len(self._partition.entries)))

    def recreate(self) -> None:
        """Delete the topic and create one with the same name."""
        self._partition = _Partition()
        self._generation += 1

    # Other readers.

    def another_reader(self) -> "MemoryLog":
        """A reader with its own position. It does not notice if the topic is recreated."""
        other = MemoryLog(self._clock)
        other._partition, other._generation = self._partition, self._generation
        return other

    def read(self, start: int, end: int) -> Records:
        """The records of a range. Raises `OffsetGone` if the log does not have the whole range."""
        ends = self.ends()
        if not ends.start <= start <= end <= ends.last_stable:
            raise OffsetGone(f"[{start}, {end}) is not in the log, which has [{ends.start}, {ends.last_stable})")
        return self._records(self._partition.visible(start, end, end - start), end)

    # The reader.

    def topic_id(self) -> str:
        self._require_answers()
        self._expected = self._topic_id()
        return self._expected

    def ends(self) -> LogEnds:
        self._require_answers()
        return self._partition.ends()

    def request_ends(self) -> MemoryEndsRequest:
        return MemoryEndsRequest(self, self._partition.ends())

    def offset_at(self, time: int) -> int | None:
        ends = self.ends()
        stable = range(ends.start, ends.last_stable)
        return next((offset for offset in stable if self._partition.entries[offset].time >= time), None)

    def seek(self, offset: int) -> None:
        self._position = offset
        self._expected = self._expected or self._topic_id()

    def poll(self, max_records: int, timeout: float) -> Records:
        if self._clock is not None:
            wait_until(lambda: bool(self._next(1)[0]), timeout=timeout, clock=self._clock)
        offsets, position = self._next(max_records)
        self._position = position
        return self._records(offsets, position)

    def mirror(self, offset: int) -> None:
        if self.reachable:
            self.mirrored = offset

    def close(self) -> None:
        self._position = self._expected = None

    def _records(self, offsets: list[int], position: int) -> Records:
        if not offsets:
            return Records.none(position)
        entries = [self._partition.entries[offset] for offset in offsets]
        return Records(
            np.array(offsets, dtype=np.int64),
            np.array([entry.time for entry in entries], dtype=np.int64),
            np.array([entry.leader_epoch for entry in entries], dtype=np.int64),
            np.array([entry.times_checked for entry in entries], dtype=np.bool_),
            [entry.value for entry in entries],
            position,
        )

    def _topic_id(self) -> str:
        return f"topic-{self._generation}"

    def _next(self, max_records: int) -> tuple[list[int], int]:
        """The offsets of the next records, and the position after them."""
        position, last_stable = self._readable_position(), self._partition.ends().last_stable
        offsets = self._partition.visible(position, last_stable, max_records)
        return offsets, offsets[-1] + 1 if len(offsets) == max_records else max(position, last_stable)

    def _readable_position(self) -> int:
        if self._position is None:
            raise RuntimeError("poll was called before seek")
        self.require_reachable()
        ends = self._partition.ends()
        if self._topic_id() != self._expected:
            raise TopicUnfit(f"the topic was deleted and recreated: {self._expected} is now {self._topic_id()}")
        if not ends.start <= self._position <= ends.high:
            raise OffsetGone(f"offset {self._position} is not in the log, which has [{ends.start}, {ends.high})")
        return self._position

    def require_reachable(self) -> None:
        """Raises `LogUnreachable` while the brokers are unreachable."""
        if not self.reachable:
            raise LogUnreachable("the log in memory was made unreachable")

    def _require_answers(self) -> None:
        self.require_reachable()
        if self.hangs:
            raise LogUnreachable("the log in memory was made to hang")


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that could not be decoded."""

    shard: int
    offset: int
    time: int
    reason: str
    value: bytes


class MemoryDeadLetters:
    """`DeadLetters` in a list."""

    def __init__(self, capacity: int | None = None) -> None:
        """Letters beyond `capacity` are lost, as with a full queue; None means unlimited."""
        self.letters: list[DeadLetter] = []
        self.lost = 0
        self._capacity = capacity

    def send(self, *, shard: int, offset: int, time: int, reason: str, value: bytes) -> None:
        if self._capacity is not None and len(self.letters) >= self._capacity:
            self.lost += 1
        else:
            self.letters.append(DeadLetter(shard, offset, time, reason, value))

    def counts(self) -> DeadLetterCounts:
        return DeadLetterCounts(len(self.letters) + self.lost, len(self.letters), self.lost)

    def wait(self, timeout: float) -> None:
        """Does nothing: all letters are delivered at once."""

    def close(self, timeout: float) -> None:
        """Does nothing: all letters are delivered at once."""
