"""The twins of Kafka's partition and dead-letter topic, in memory: for simulations, and for tests without servers.

`MemoryLog` is both the partition, with what producers and administrators do to it, and the one reader of it. It does to
a reader what Kafka does: transactions take offsets that nobody sees, the start of the log moves, the topic is deleted
and made again, the brokers are away.
"""

from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from strandline.clock import Clock, wait_until
from strandline.node.shard.log import DeadLetterCounts, LogEnds, LogUnreachable, OffsetGone, Records, TopicUnfit


@dataclass(slots=True)
class _Entry:
    """What lies at an offset: a record, or a transaction's marker, which nobody sees."""

    time: int
    value: bytes
    visible: bool
    times_checked: bool = False
    leader_epoch: int = 0


@dataclass(slots=True)
class _Partition:
    """What lies at the brokers, from the making of the topic to its deletion."""

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

    def visible(self, position: int, behind: int, max_records: int) -> list[int]:
        """The offsets of the first records in a range of stable ones that a reader may see."""
        if position >= behind:
            return []
        stable = range(position, behind)
        return list(islice((offset for offset in stable if self.entries[offset].visible), max_records))


class MemoryTransaction:
    """Records that nobody sees until `commit`. That, or `abort`, ends it with a marker, which takes an offset."""

    def __init__(self, partition: _Partition) -> None:
        """For `MemoryLog.begin` only."""
        self._partition = partition
        self._entries: list[_Entry] = []

    def append(self, value: bytes, time: int, *, times_checked: bool = False) -> int:
        """A record; returns its offset."""
        entry = _Entry(time, value, visible=False, times_checked=times_checked)
        offset = self._partition.put(entry)
        self._partition.opened.setdefault(id(self), offset)
        self._entries.append(entry)
        return offset

    def commit(self) -> None:
        """Its records are seen from now on."""
        for entry in self._entries:
            entry.visible = True
        self._end()

    def abort(self) -> None:
        """Its records are never seen."""
        self._end()

    def _end(self) -> None:
        # Without a record no partition takes part in it, and none gets a marker.
        if self._partition.opened.pop(id(self), None) is not None:
            self._partition.put(_Entry(self._entries[-1].time, b"", visible=False))
        self._entries = []


class MemoryEndsRequest:
    """An `EndsRequest`. Its answer is as of the moment when it was asked, and is there at once unless the brokers
    hang.
    """

    def __init__(self, log: "MemoryLog", ends: LogEnds) -> None:
        """For `MemoryLog.request_ends` only."""
        self._log, self._ends = log, ends

    def answer(self) -> LogEnds | None:
        self._log.require_reachable()
        return None if self._log.hangs else self._ends


class MemoryLog:
    """The `PartitionLog` of a partition that lies in this object. It outlives its reader: after `close`, `seek` begins
    anew.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        """A poll that finds nothing waits on `clock`; without one it returns at once."""
        self.reachable = True
        """While False, every question raises `LogUnreachable`."""
        self.hangs = False
        """While True, no question is answered, as by a broker that is frozen. What was fetched ahead is read."""
        self.mirrored: int | None = None
        """The offset that was mirrored last."""
        self._clock = clock
        self._partition = _Partition()
        self._generation = 1
        self._expected: str | None = None
        self._position: int | None = None

    # What producers and administrators do.

    def append(self, value: bytes, time: int, *, times_checked: bool = False) -> int:
        """A record, perhaps marked as one whose samples' times were checked; returns its offset."""
        return self._partition.put(_Entry(time, value, visible=True, times_checked=times_checked))

    def begin(self) -> MemoryTransaction:
        """A transaction. From its first record on it is open, and holds back what lies behind it."""
        return MemoryTransaction(self._partition)

    def delete_before(self, offset: int) -> None:
        """Let the log begin at this offset, as retention does. It never moves back."""
        self._partition.start = max(self._partition.start, min(offset, len(self._partition.entries)))

    def recreate(self) -> None:
        """Delete the topic and make one of the same name."""
        self._partition = _Partition()
        self._generation += 1

    # What other readers do, beside the one below.

    def another_reader(self) -> "MemoryLog":
        """A reader with a position of its own, until the topic is made again."""
        other = MemoryLog(self._clock)
        other._partition, other._generation = self._partition, self._generation
        return other

    def read(self, start: int, end: int) -> Records:
        """The records of a range. Raises `OffsetGone` if the log does not have all of it any more."""
        ends = self.ends()
        if not ends.start <= start <= end <= ends.last_stable:
            raise OffsetGone(f"[{start}, {end}) is not in the log, which has [{ends.start}, {ends.last_stable})")
        return self._records(self._partition.visible(start, end, end - start), end)

    # What a reader does.

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
        offsets, behind = self._next(max_records)
        self._position = behind
        return self._records(offsets, behind)

    def mirror(self, offset: int) -> None:
        if self.reachable:
            self.mirrored = offset

    def close(self) -> None:
        self._position = self._expected = None

    def _records(self, offsets: list[int], behind: int) -> Records:
        if not offsets:
            return Records.none(behind)
        entries = [self._partition.entries[offset] for offset in offsets]
        return Records(
            np.array(offsets, dtype=np.int64),
            np.array([entry.time for entry in entries], dtype=np.int64),
            np.array([entry.leader_epoch for entry in entries], dtype=np.int64),
            np.array([entry.times_checked for entry in entries], dtype=np.bool_),
            [entry.value for entry in entries],
            behind,
        )

    def _topic_id(self) -> str:
        return f"topic-{self._generation}"

    def _next(self, max_records: int) -> tuple[list[int], int]:
        """The offsets of the next records, and the position behind them."""
        position, last_stable = self._readable_position(), self._partition.ends().last_stable
        offsets = self._partition.visible(position, last_stable, max_records)
        return offsets, offsets[-1] + 1 if len(offsets) == max_records else max(position, last_stable)

    def _readable_position(self) -> int:
        if self._position is None:
            raise RuntimeError("seek comes before the first poll")
        self.require_reachable()
        ends = self._partition.ends()
        if self._topic_id() != self._expected:
            raise TopicUnfit(f"the topic was deleted and made again: {self._expected} is now {self._topic_id()}")
        if not ends.start <= self._position <= ends.high:
            raise OffsetGone(f"offset {self._position} is not in the log, which has [{ends.start}, {ends.high})")
        return self._position

    def require_reachable(self) -> None:
        """Raises `LogUnreachable` while the brokers are away."""
        if not self.reachable:
            raise LogUnreachable("the log in memory was made unreachable")

    def _require_answers(self) -> None:
        self.require_reachable()
        if self.hangs:
            raise LogUnreachable("the log in memory was made to hang")


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that was put aside."""

    shard: int
    offset: int
    time: int
    reason: str
    value: bytes


class MemoryDeadLetters:
    """The `DeadLetters` that keeps them in a list."""

    def __init__(self, room: int | None = None) -> None:
        """Past `room` letters, they are lost, as from a full queue; None for any number."""
        self.letters: list[DeadLetter] = []
        self.lost = 0
        self._room = room

    def send(self, *, shard: int, offset: int, time: int, reason: str, value: bytes) -> None:
        if self._room is not None and len(self.letters) >= self._room:
            self.lost += 1
        else:
            self.letters.append(DeadLetter(shard, offset, time, reason, value))

    def counts(self) -> DeadLetterCounts:
        return DeadLetterCounts(len(self.letters) + self.lost, len(self.letters), self.lost)

    def wait(self, timeout: float) -> None:
        """Nothing is under way."""

    def close(self, timeout: float) -> None:
        """Nothing is under way."""
