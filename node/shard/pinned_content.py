"""What identifies the samples of a shard in a range of times at one moment: by it a later moment tells what changed."""

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
    """How much the buffer of a bucket had taken."""

    bucket: int
    version: BufferVersion


@dataclass(frozen=True, slots=True)
class PinnedContent:
    """Manifest rows that overlap the times, and buffers. `reader` is another one after each start of the shard."""

    reader: str
    times: TimeRange
    rows: frozenset[StoredRow]
    buffers: tuple[BufferContent, ...]

    def first_change(self, before: "PinnedContent") -> int:
        """The least time of a sample that may have come or gone with a row or a buffer since an earlier moment; behind
        the times of both moments if there is none, and `EARLIEST` if the earlier one tells nothing of these times.

        What buffers that are still there have taken since then is not in it; they have to be asked. A buffer goes when
        all of it is stored. Its samples are in rows then, which were not there before.
        """
        if self.reader != before.reader or before.times.first > self.times.first:
            return EARLIEST
        last = min(self.times.last, before.times.last)
        changed = (row.least_time for row in self.rows ^ before.rows if row.overlaps(self.times.first, last))
        return min(changed, default=min(last, LATEST - 1) + 1)
