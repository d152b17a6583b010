"""What identifies the samples of a shard in a range of times at one moment: by it a later moment tells what changed."""

from collections import Counter
from dataclasses import dataclass

from strandline.store.buffer.view import BufferVersion
from strandline.time_range import EARLIEST, LATEST, TimeRange


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A row of the manifest whose samples are read. Under one attempt a group of a bucket never changes."""

    bucket: int
    group: int
    attempt: str
    least_time: int
    greatest_time: int

    def overlaps(self, first: int, last: int) -> bool:
        """Whether a sample of it may lie from one time to another, both included."""
        return self.least_time <= last and first <= self.greatest_time


@dataclass(frozen=True, slots=True)
class BufferContent:
    """How much the buffer of a bucket had taken; if the bucket `is_closed`, it takes no more."""

    bucket: int
    version: BufferVersion
    is_closed: bool


@dataclass(frozen=True, slots=True)
class PinnedContent:
    """Manifest rows that overlap the times, and buffers. `reader` is another one after each start of the shard.
    `settled` is the time by which data had expired.
    """

    reader: str
    times: TimeRange
    rows: frozenset[StoredRow]
    buffers: tuple[BufferContent, ...]
    settled: int

    def first_change(self, before: "PinnedContent", time_to_live: int) -> int:
        """The least time of a sample that may have come or gone with a row or a buffer since an earlier moment; behind
        the times of both moments if there is none, and `EARLIEST` if the earlier one tells nothing of these times.

        What buffers that are still there have taken since then is not in it; they have to be asked. A row that stores
        what the earlier moment found in a buffer changes nothing. Such a row was written later than that, so that its
        samples live for `time_to_live` longer at least: beyond this the earlier moment tells nothing.
        """
        if (
            self.reader != before.reader
            or before.times.first > self.times.first
            or self.settled - before.settled >= time_to_live
        ):
            return EARLIEST
        last = min(self.times.last, before.times.last)
        changed = [row for row in self.rows ^ before.rows if row.overlaps(self.times.first, last)]
        moved = self._buffered_then(before) if changed else frozenset()
        if moved:
            there = {(row.bucket, row.group) for row in before.rows}
            changed = [row for row in changed if row.bucket not in moved or (row.bucket, row.group) in there]
        return min((row.least_time for row in changed), default=min(last, LATEST - 1) + 1)

    def _buffered_then(self, before: "PinnedContent") -> frozenset[int]:
        """The buckets whose rows, if they were not there at an earlier moment, hold what their buffer had then, and
        besides only what the buffer itself tells of now.
        """
        here = {one.version.buffer for one in self.buffers}
        known = {one.bucket for one in before.buffers if one.is_closed or one.version.buffer in here}
        # While a shard recovers there may be two buffers of one bucket: which of them a row stores is not known.
        numbers = {(one.bucket, one.version.buffer) for one in before.buffers}
        several = Counter(bucket for bucket, _ in numbers)
        return frozenset(bucket for bucket in known if several[bucket] == 1)
