"""Up to which time a shard has read all that its partition holds: what its answers may lack, and for how long.

Each answer about the ends of the log gives a high watermark and the time before it was asked for. Once reading has
passed that offset, everything that had reached the log by that time is read. This holds for a shard that reads slowly,
for records behind an open transaction and for a broker that does not answer alike, and depends on no record's time.
"""

from collections import deque
from dataclasses import dataclass
from math import inf

from strandline.clock import Clock
from strandline.node.shard.ends_watch import EndsSnapshot

# Beyond this number the horizon becomes coarser.
_MAX_SNAPSHOTS = 256


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that a producer holds open: `records` offsets from `offset` on can't be read before it ends.
    `since` is when it was first seen, in milliseconds.
    """

    offset: int
    records: int
    since: int


@dataclass(frozen=True, slots=True)
class Horizon:
    """Everything that had reached the log at `complete_at` (milliseconds) is read, and that was `age_s` ago; 0 and
    infinite before this is known for the first time. `is_behind` says whether records are known that are not read.
    """

    complete_at: int
    age_s: float
    is_behind: bool
    transaction: OpenTransaction | None


class ReadHorizon:
    """The horizon of one shard. The thread that reads moves it, and any thread may look."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead: deque[EndsSnapshot] = deque()
        self._reached: EndsSnapshot | None = None
        self._transaction: OpenTransaction | None = None

    def add(self, snapshot: EndsSnapshot, position: int) -> None:
        """The brokers have answered, and reading stands at this position."""
        ends, before = snapshot.ends, self._transaction
        if ends.high > ends.last_stable:
            is_same = before is not None and before.offset == ends.last_stable
            since = before.since if before is not None and is_same else snapshot.present
            self._transaction = OpenTransaction(ends.last_stable, ends.high - ends.last_stable, since)
        else:
            self._transaction = None
        self._ahead.append(snapshot)
        if len(self._ahead) > _MAX_SNAPSHOTS:
            # The one that is missed least. Without it the horizon moves later, and never too far.
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
        """The horizon as it is now."""
        reached, is_behind = self._reached, bool(self._ahead)
        if reached is None:
            return Horizon(0, inf, is_behind, self._transaction)
        return Horizon(reached.present, self._clock.monotonic() - reached.requested_at, is_behind, self._transaction)
