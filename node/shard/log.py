"""The log that a shard reads: one partition of a topic, by offset.

Offsets have gaps: transaction markers and aborted records have offsets but are invisible to readers. So the end of a
range is reached when the *position* has reached it, not when its last record was read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from strandline.arrays import Bools, I64s
from strandline.errors import Fatal
from strandline.kafka.errors import LogUnreachable, TopicMissing, TopicUnfit
from strandline.recovery.cutting import NO_TIME
from strandline.recovery.log_ends import LogEnds

__all__ = [
    "NO_TIME",
    "DeadLetterCounts",
    "DeadLetters",
    "EndsRequest",
    "LogEnds",
    "LogUnreachable",
    "OffsetGone",
    "PartitionLog",
    "Records",
    "TopicMissing",
    "TopicUnfit",
]


class OffsetGone(Fatal):
    """The position is before the start of the log, or after its end."""


_NO_TIMES: Final[I64s] = np.empty(0, dtype=np.int64)
_NONE_CHECKED: Final[Bools] = np.empty(0, dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class Records:
    """Records in order of their offsets, with their record times in milliseconds (`NO_TIME` for none), the epochs of
    the leaders that appended them (-1 if unknown), whether the producer has checked the times of their samples, and the
    position after them.
    """

    offsets: I64s
    times: I64s
    leader_epochs: I64s
    times_checked: Bools
    values: Sequence[bytes] = field(repr=False)
    position: int

    def __len__(self) -> int:
        return len(self.offsets)

    def part(self, start: int, end: int) -> "Records":
        """The records with indices from `start` up to but not including `end`. The position is that of the record at
        `end`, or unchanged if there is none.
        """
        position = self.position if end >= len(self) else int(self.offsets[end])
        part = slice(start, end)
        return Records(
            self.offsets[part],
            self.times[part],
            self.leader_epochs[part],
            self.times_checked[part],
            self.values[part],
            position,
        )

    @classmethod
    def none(cls, position: int) -> "Records":
        """No records."""
        return cls(_NO_TIMES, _NO_TIMES, _NO_TIMES, _NONE_CHECKED, (), position)


class EndsRequest(Protocol):
    """A request for the ends of a log that has been sent to the brokers."""

    def answer(self) -> LogEnds | None:
        """The ends, or None while the brokers have not answered. Never waits. Raises `LogUnreachable` if they don't
        answer in time, or answer with an error.
        """
        ...


class PartitionLog(Protocol):
    """One partition, read by one thread. Only committed records are visible."""

    def topic_id(self) -> str:
        """The id of the topic, which changes if the topic is deleted and recreated."""
        ...

    def ends(self) -> LogEnds:
        """The current ends of the log. Waits for the brokers' answer. Raises `LogUnreachable`."""
        ...

    def request_ends(self) -> EndsRequest:
        """Like `ends` without waiting. The request is sent now, so the answer covers everything that has reached the
        log before. A topic or partition that the brokers don't know counts as unreachable; `poll` finds out whether it
        was deleted.
        """
        ...

    def offset_at(self, time: int) -> int | None:
        """The first offset whose record time is at least `time`; None if there is none yet."""
        ...

    def seek(self, offset: int) -> None:
        """Continue reading at this offset."""
        ...

    def poll(self, max_records: int, timeout: float) -> Records:
        """At most `max_records` records, as soon as there are any; none after `timeout` seconds.

        Raises `OffsetGone` if the log does not have the position, and `LogUnreachable` if the brokers are known to be
        unreachable.
        """
        ...

    def mirror(self, offset: int) -> None:
        """Commit an offset for the consumer group `strandline-<dataset>`, for Kafka's lag tools. Nothing depends on it:
        a failure is logged and ignored.
        """
        ...

    def close(self) -> None:
        """Close the connection. Closing twice does nothing."""
        ...


@dataclass(frozen=True, slots=True)
class DeadLetterCounts:
    """The numbers of dead letters that were sent, delivered and lost. The difference is still being sent."""

    sent: int
    delivered: int
    lost: int


class DeadLetters(Protocol):
    """Takes the records that can't be decoded."""

    def send(self, *, shard: int, offset: int, time: int, reason: str, value: bytes) -> None:
        """Send a record, with headers for the reason and its origin. Never blocks and never raises: an undeliverable
        record is counted as lost, and its offset is logged.
        """
        ...

    def counts(self) -> DeadLetterCounts:
        """The current counts. Any thread may call it."""
        ...

    def wait(self, timeout: float) -> None:
        """Wait until all sent records are delivered, for at most `timeout` seconds."""
        ...

    def close(self, timeout: float) -> None:
        """Wait until all sent records are delivered, for at most `timeout` seconds. The rest is lost."""
        ...
