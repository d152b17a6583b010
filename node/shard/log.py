"""The log that a shard reads: one partition of a topic, by offset.

Offsets have holes: transaction markers and aborted records take offsets that no reader sees. So the end of a range is
reached when the *position* has reached it, not when its last record was seen.
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
    """The position lies below what the log still has, or behind its end."""


_NO_TIMES: Final[I64s] = np.empty(0, dtype=np.int64)
_NONE_CHECKED: Final[Bools] = np.empty(0, dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class Records:
    """Records in order of their offsets, with their record times in milliseconds (`NO_TIME` for none), the epochs of
    the leaders that took them (-1 where that is not known), whether the producer has checked the times of their
    samples, and the position behind them.
    """

    offsets: I64s
    times: I64s
    leader_epochs: I64s
    times_checked: Bools
    values: Sequence[bytes] = field(repr=False)
    position: int

    def __len__(self) -> int:
        return len(self.offsets)

    def part(self, first: int, behind: int) -> "Records":
        """Those at places from `first` up to, not including, `behind`; the position is behind the last of them or, of
        all that are left, as it was.
        """
        position = self.position if behind >= len(self) else int(self.offsets[behind])
        places = slice(first, behind)
        return Records(
            self.offsets[places],
            self.times[places],
            self.leader_epochs[places],
            self.times_checked[places],
            self.values[places],
            position,
        )

    @classmethod
    def none(cls, position: int) -> "Records":
        """No record."""
        return cls(_NO_TIMES, _NO_TIMES, _NO_TIMES, _NONE_CHECKED, (), position)


class EndsRequest(Protocol):
    """A request for the ends of a log that was sent to the brokers."""

    def answer(self) -> LogEnds | None:
        """The ends, or None while the brokers have not answered. Never waits. Raises `LogUnreachable` if they did not
        answer in time, or could not.
        """
        ...


class PartitionLog(Protocol):
    """One partition, read by one thread. Only committed records are seen."""

    def topic_id(self) -> str:
        """The identity of the topic: another one after it was deleted and made again."""
        ...

    def ends(self) -> LogEnds:
        """Where the log begins and ends now, asked of the brokers. Raises `LogUnreachable`."""
        ...

    def request_ends(self) -> EndsRequest:
        """The same without waiting: the request is sent now, so the answer covers whatever reached the log before. A
        topic or partition that the brokers don't know counts as unreachable here: `poll` finds out whether it is gone.
        """
        ...

    def offset_at(self, time: int) -> int | None:
        """The first offset whose record time is at least `time`; None if there is none up to now."""
        ...

    def seek(self, offset: int) -> None:
        """Go on from this offset."""
        ...

    def poll(self, max_records: int, timeout: float) -> Records:
        """At most so many records, as soon as there are some; none after `timeout` seconds without any.

        Raises `OffsetGone` if the log no longer has the position, and `LogUnreachable` if the brokers are known to be
        out of reach.
        """
        ...

    def mirror(self, offset: int) -> None:
        """Commit an offset for the consumer group `strandline-<dataset>`, so that ordinary lag tools see it. It steers
        nothing; what can't be committed is logged and left.
        """
        ...

    def close(self) -> None:
        """Let go of the connection. Closing twice does nothing."""
        ...


@dataclass(frozen=True, slots=True)
class DeadLetterCounts:
    """How many letters were sent; of those, how many the brokers have, and how many are lost. The rest is under way."""

    sent: int
    delivered: int
    lost: int


class DeadLetters(Protocol):
    """Where records go that can't be decoded."""

    def send(self, *, shard: int, offset: int, time: int, reason: str, value: bytes) -> None:
        """Put a record aside, with headers that say why and where it came from. Never blocks and never fails: what
        can't be delivered is counted, and its place is logged.
        """
        ...

    def counts(self) -> DeadLetterCounts:
        """The counts as of now. Any thread may ask."""
        ...

    def wait(self, timeout: float) -> None:
        """Wait so many seconds at the most until all that were sent are delivered."""
        ...

    def close(self, timeout: float) -> None:
        """Wait so many seconds at the most until all are delivered."""
        ...
