"""Where the open bucket of a shard ends. In this order: at a committed cut, at a planned cut, by the records' times,
or, if the bucket is overdue, at the end of the log. `recovery/cutting.py` has the rules.
"""

from collections import deque
from collections.abc import Sequence

from strandline.node.shard.ends_watch import EndsSnapshot, EndsWatch
from strandline.node.shard.log import LogUnreachable, Records, TopicUnfit
from strandline.node.shard.log_times import log_times
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.status import Status
from strandline.node.throttled_warning import ThrottledWarning
from strandline.recovery.cut_planning import PlannedCut, planned_cuts
from strandline.recovery.cutting import Cutting, PinnedEnd
from strandline.store.rows import CutRow


class BucketEnds:
    """Decides for one shard. Only the reading thread calls it."""

    def __init__(
        self,
        parts: ShardParts,
        status: Status,
        known_cuts: Sequence[CutRow],
        ends: EndsWatch,
        log_warning: ThrottledWarning,
    ) -> None:
        """`known_cuts` are the committed cuts from the open bucket on, oldest first."""
        options = parts.options
        self.known: deque[CutRow] = deque(known_cuts)
        self._planned: deque[PlannedCut] = deque()
        self._pinned: PinnedEnd | None = None
        self._cutting = Cutting(options.policy.flush_interval, options.grace)
        self._log, self._present, self._clock = parts.log, parts.present, parts.clock
        self._status, self._ends, self._log_warning = status, ends, log_warning
        self._planning_failed_at: float | None = None

    def next_cut(self, bucket: int, start: int, records: Records) -> tuple[int, int] | None:
        """The index in a batch at which the bucket that began at `start` ends, and the offset; None if it does not end
        within the batch. A committed or planned cut takes precedence over the records' times.
        """
        decided = self.known or self._planned
        if decided:
            return _index_of(decided[0].end, records)
        present, pinned = self._present.now_ms(), self._pinned
        if pinned is not None and not self._cutting.ends_at(bucket, pinned):
            pinned = None
        index = self._cutting.index_of_cut(bucket, records.times, present)
        if index is None or (pinned is not None and records.offsets[index] >= pinned.offset):
            return _index_of(pinned.offset, records) if pinned is not None else None
        offset = int(records.offsets[index])
        if not self._cutting.closes_several(bucket, int(records.times[index]), present):
            return index, offset
        known = CutRow(bucket - 1, start, start, expires=0)
        return self.next_cut(bucket, start, records) if self._plan(known, offset, records.position) else None

    def take(self) -> CutRow | None:
        """Advance to the next bucket. Returns the cut row of the closed one if it is committed."""
        if self.known:
            return self.known.popleft()
        if self._planned:
            self._planned.popleft()
        return None

    def lacks_end(self, bucket: int, present: int) -> bool:
        """Whether the bucket is overdue and its end not decided yet."""
        if self.known or self._planned or not self._cutting.is_overdue(bucket, present):
            return False
        return self._pinned is None or not self._cutting.ends_at(bucket, self._pinned)

    def pin(self, bucket: int, snapshot: EndsSnapshot, position: int) -> bool:
        """Make an overdue bucket end where the log ended at the time of the request. Returns whether it does."""
        # A log that ends before the position is not the one that was read: nothing follows from it.
        if not self.lacks_end(bucket, snapshot.present) or snapshot.ends.high < snapshot.position:
            return False
        # Records that were read since the request are in the bucket already.
        self._pinned = PinnedEnd(max(snapshot.ends.high, position), snapshot.present)
        return True

    def _plan(self, known: CutRow, read_to: int, fetched_to: int) -> bool:
        """Plan the cuts after a known one, up to the present, by the times of all records in the log. Returns whether
        there are any. Records below `read_to` are in the open bucket, records below `fetched_to` have been fetched.
        """
        if self._planning_failed_at is not None and not self._ends.answered_since(self._planning_failed_at):
            return False
        present = self._present.now_ms()
        try:
            times = log_times(self._log, self._status)
            planned = planned_cuts(known, self._log.ends(), present, times, self._cutting, read_to=read_to)
        except (LogUnreachable, TopicUnfit) as error:
            # The bucket stays open meanwhile, and nothing is lost. Each lookup waits for its answer, so planning is not
            # retried before the brokers have answered another request. `poll` finds out whether the topic is gone.
            self._planning_failed_at = self._clock.monotonic()
            self._log_warning.about(error)
            planned = []
        finally:
            self._log.seek(fetched_to)
        self._planned.extend(planned)
        return bool(planned)


def _index_of(end: int, records: Records) -> tuple[int, int] | None:
    """The index in a batch of the first record from this offset on, with the offset; None if it is after the batch."""
    return (int(records.offsets.searchsorted(end)), end) if records.position >= end else None
