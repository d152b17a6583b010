"""Identifies the samples of a shard in a time range at one moment, so that changes can be detected later."""

from collections import Counter
from dataclasses import dataclass

from strandline.store.buffer.view import BufferVersion
from strandline.time_range import EARLIEST, LATEST, TimeRange


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A manifest row whose samples are read. A group of a bucket never changes under the same attempt."""

    bucket: int
    group: int
    attempt: str
    least_time: int
    greatest_time: int

    def overlaps(self, first: int, last: int) -> bool:
        """Whether it may have a sample between two times, both included."""
        return self.least_time <= last and first <= self.greatest_time


@dataclass(frozen=True, slots=True)
class BufferContent:
    """The version of a bucket's buffer. If the bucket `is_closed`, the buffer does not change any further."""

    bucket: int
    version: BufferVersion
    is_closed: bool


@dataclass(frozen=True, slots=True)
class PinnedContent:
    """The manifest rows that overlap `times`, and the buffers. `reader` changes with each start of the shard. `settled`
    is the time up to which data had expired.
    """

    reader: str
    times: TimeRange
    rows: frozenset[StoredRow]
    buffers: tuple[BufferContent, ...]
    settled: int

    def first_change(self, before: "PinnedContent", time_to_live: int) -> int:
        """The least time of a sample that may have been added or removed with a row or a buffer since `before`. If
        there is none, a time after both time ranges; if the contents can't be compared, `EARLIEST`.

        Samples that existing buffers have taken since then are not considered; the buffers know them. A row that stores
        what `before` had in a buffer is not a change. Such a row was written after `before`, so its samples live for at
        least another `time_to_live`; after that time, the contents can't be compared.
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
        """The buckets whose new rows since `before` contain only what their buffer had then, and what the buffer itself
        reports as taken since.
        """
        here = {one.version.buffer for one in self.buffers}
        known = {one.bucket for one in before.buffers if one.is_closed or one.version.buffer in here}
        # While a shard recovers, a bucket may have two buffers, and it is unknown which of them a row stores.
        numbers = {(one.bucket, one.version.buffer) for one in before.buffers}
        several = Counter(bucket for bucket, _ in numbers)
        return frozenset(bucket for bucket in known if several[bucket] == 1)
