"""Where the open bucket of a shard ends: by cuts that are committed, by cuts that were decided ahead, by the records'
times, or where the log ended once it is overdue. `recovery/cutting.py` has the rules; here they are asked in order.
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
    """Decides for one shard. The thread that reads calls it."""

    def __init__(
        self, parts: ShardParts, status: Status, known_cuts: Sequence[CutRow], ends: EndsWatch, no_log: ThrottledWarning
    ) -> None:
        """`known_cuts` are committed and lie ahead, oldest first."""
        options = parts.options
        self.known: deque[CutRow] = deque(known_cuts)
        self._planned: deque[PlannedCut] = deque()
        self._pinned: PinnedEnd | None = None
        self._cutting = Cutting(options.policy.flush_interval, options.grace)
        self._log, self._present, self._clock = parts.log, parts.present, parts.clock
        self._status, self._ends, self._no_log = status, ends, no_log
        self._unplanned_at: float | None = None

    def next_cut(self, bucket: int, start: int, records: Records) -> tuple[int, int] | None:
        """The place in a batch where the bucket that began at `start` ends, and the offset; None if it goes on behind
        the batch. A cut that was decided counts, whatever the records' times would say now.
        """
        decided = self.known or self._planned
        if decided:
            return _place_of(decided[0].end, records)
        present, pinned = self._present.now_ms(), self._pinned
        if pinned is not None and not self._cutting.ends_at(bucket, pinned):
            pinned = None
        place = self._cutting.index_of_cut(bucket, records.times, present)
        if place is None or (pinned is not None and records.offsets[place] >= pinned.offset):
            return _place_of(pinned.offset, records) if pinned is not None else None
        offset = int(records.offsets[place])
        if not self._cutting.closes_several(bucket, int(records.times[place]), present):
            return place, offset
        known = CutRow(bucket - 1, start, start, expires=0)
        return self.next_cut(bucket, start, records) if self._plan(known, offset, records.position) else None

    def take(self) -> CutRow | None:
        """The bucket was closed: its cut row if that is committed. Go on with the next one."""
        if self.known:
            return self.known.popleft()
        if self._planned:
            self._planned.popleft()
        return None

    def lacks_end(self, bucket: int, present: int) -> bool:
        """Whether the bucket is overdue, and nothing has decided yet where it ends."""
        if self.known or self._planned or not self._cutting.is_overdue(bucket, present):
            return False
        return self._pinned is None or not self._cutting.ends_at(bucket, self._pinned)

    def pin(self, bucket: int, snapshot: EndsSnapshot, position: int) -> bool:
        """Let an overdue bucket end where the log ended when the brokers were asked; whether it does now."""
        # A log that ends before the position is another one than was read: nothing follows from it.
        if not self.lacks_end(bucket, snapshot.present) or snapshot.ends.high < snapshot.position:
            return False
        # What was read while the answer was on its way is in the bucket already.
        self._pinned = PinnedEnd(max(snapshot.ends.high, position), snapshot.present)
        return True

    def _plan(self, known: CutRow, read_to: int, fetched_to: int) -> bool:
        """Decide where the buckets behind a cut end, up to the present, by the times of all records that the log has;
        whether there are some. Up to `read_to` records lie in the open bucket, up to `fetched_to` they were fetched.
        """
        if self._unplanned_at is not None and not self._ends.answered_since(self._unplanned_at):
            return False
        present = self._present.now_ms()
        try:
            times = log_times(self._log, self._status)
            planned = planned_cuts(known, self._log.ends(), present, times, self._cutting, read_to=read_to)
        except (LogUnreachable, TopicUnfit) as error:
            # The bucket goes on meanwhile, and nothing is lost. Each look-up waits for its answer, so the brokers are
            # not asked again before they have answered something else. Whether a topic is gone is for `poll` to tell.
            self._unplanned_at = self._clock.monotonic()
            self._no_log.about(error)
            planned = []
        finally:
            self._log.seek(fetched_to)
        self._planned.extend(planned)
        return bool(planned)


def _place_of(end: int, records: Records) -> tuple[int, int] | None:
    """The place in a batch where a bucket that ends at this offset ends; None if that lies behind the batch."""
    return (int(records.offsets.searchsorted(end)), end) if records.position >= end else None
