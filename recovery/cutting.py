"""Where buckets end: at a record whose time has reached the deadline, or at the end of the log if there is none. Pure
functions.

The brokers' clock alone closes nothing: a record closes a bucket only once the present (see `present`) has reached the
deadline too. A record whose time is ahead of the present closes nothing: records of the bucket may follow it, from a
broker with another clock. The present alone does not close a bucket either while the log is read slowly: then the
records' times decide where it ends.
"""

from dataclasses import dataclass

import numpy as np

from strandline.arrays import I64s

NO_TIME = -1
"""The time of a record without one, as Kafka's clients return it."""


@dataclass(frozen=True, slots=True)
class PinnedEnd:
    """The high watermark of the log, and the present before it was read: all records that had reached the log by then
    are below it.
    """

    offset: int
    present: int


@dataclass(frozen=True, slots=True)
class Cutting:
    """The rules for closing buckets. Bucket b is closed by the first record whose time is at least its deadline, which
    is (b + 1) flush intervals plus the grace.
    """

    flush_interval: int
    grace: int

    def end_of(self, bucket: int) -> int:
        """The end of a bucket's time."""
        return (bucket + 1) * self.flush_interval

    def deadline(self, bucket: int) -> int:
        """The lowest record time that closes a bucket."""
        return self.end_of(bucket) + self.grace

    def bucket_of(self, time: int) -> int:
        """The bucket of a record with this time, by its time alone."""
        return (time - self.grace) // self.flush_interval

    def index_of_cut(self, bucket: int, times: I64s, present: int) -> int | None:
        """The index of the first record that closes the bucket; None if none does."""
        deadline = self.deadline(bucket)
        if present < deadline or len(times) == 0:
            return None
        late = (times >= deadline) & (times < self.ahead_from(present))
        index = int(np.argmax(late))
        return index if late[index] else None

    def ahead_from(self, present: int) -> int:
        """The lowest record time that is ahead of the present by more than brokers' clocks may differ (the grace)."""
        return present + self.grace + 1

    def closes_several(self, bucket: int, time: int, present: int) -> bool:
        """Whether a record that closes the bucket would also close the next one: after a period without records, or
        because the broker's clock was ahead for this record.
        """
        return min(time, present) >= self.deadline(bucket + 1)

    def is_overdue(self, bucket: int, present: int) -> bool:
        """Whether a bucket has to be closed without a record: the present is past its deadline by another grace."""
        return present >= self.deadline(bucket) + self.grace

    def ends_at(self, bucket: int, pinned: PinnedEnd) -> bool:
        """Whether a bucket ends at the pinned end of the log, unless a record below that end closes it."""
        return self.is_overdue(bucket, pinned.present)
