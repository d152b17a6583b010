"""The time up to which a shard has read everything in its partition, and so what its answers may lack.

Each request for the ends of the log yields a high watermark and the time before the request. Once the position has
passed that offset, everything that had reached the log by that time is read. This also holds for slow shards, for
records after an open transaction and for brokers that don't answer, and does not depend on the records' times.
"""

from collections import deque
from dataclasses import dataclass
from math import inf

from strandline.clock import Clock
from strandline.node.shard.ends_watch import EndsSnapshot

# Beyond this number, the horizon becomes coarser.
_MAX_SNAPSHOTS = 256


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """An open transaction: `records` offsets from `offset` on can't be read before it ends. `since` is when it was
    first seen, in milliseconds.
    """

    offset: int
    records: int
    since: int


@dataclass(frozen=True, slots=True)
class Horizon:
    """Everything that had reached the log at `complete_at` (milliseconds), which was `age_s` ago, is read; 0 and
    infinite until this is known. `is_behind` is whether there are known unread records.
    """

    complete_at: int
    age_s: float
    is_behind: bool
    transaction: OpenTransaction | None


class ReadHorizon:
    """The horizon of one shard. The reading thread moves it; any thread may call `now`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead: deque[EndsSnapshot] = deque()
        self._reached: EndsSnapshot | None = None
        self._transaction: OpenTransaction | None = None

    def add(self, snapshot: EndsSnapshot, position: int) -> None:
        """Add an answer of the brokers. `position` is the current position."""
        ends, before = snapshot.ends, self._transaction
        if ends.high > ends.last_stable:
            is_same = before is not None and before.offset == ends.last_stable
            since = before.since if before is not None and is_same else snapshot.present
            self._transaction = OpenTransaction(ends.last_stable, ends.high - ends.last_stable, since)
        else:
            self._transaction = None
        self._ahead.append(snapshot)
        if len(self._ahead) > _MAX_SNAPSHOTS:
            # Remove the snapshot with the smallest gap. Without it, the horizon moves later, but never too far.
            times = [one.requested_at for one in self._ahead]
            gaps = [after - before for before, after in zip(times, times[2:], strict=False)]
            del self._ahead[gaps.index(min(gaps)) + 1]
        self.read_to(position)

    def read_to(self, position: int) -> None:
        """Everything below this offset is read."""
        ahead = self._ahead
        while ahead and ahead[0].ends.high <= position:
            self._reached = ahead.popleft()

    def now(self) -> Horizon:
        """The current horizon."""
        reached, is_behind = self._reached, bool(self._ahead)
        if reached is None:
            return Horizon(0, inf, is_behind, self._transaction)
        return Horizon(reached.present, self._clock.monotonic() - reached.requested_at, is_behind, self._transaction)
