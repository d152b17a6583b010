"""Where buckets end: at a record whose time has come, or where the log ended when none came. Pure functions.

The brokers' clock alone closes nothing: a record counts only once the present (see `present`) has reached the deadline,
too. A record whose time lies ahead of the present closes nothing: behind it may lie records of the bucket, which a
broker with another clock has taken. Nor does the present alone decide where the log is read slowly: then the records'
times say where a bucket ends.
"""

from dataclasses import dataclass

import numpy as np

from strandline.arrays import I64s

NO_TIME = -1
"""The time of a record that has none, as Kafka's clients give it."""


@dataclass(frozen=True, slots=True)
class PinnedEnd:
    """The high watermark of the log, and the present before it was asked for: whatever reached the log by then lies
    below it.
    """

    offset: int
    present: int


@dataclass(frozen=True, slots=True)
class Cutting:
    """Bucket b is closed by the first record whose time is at least its deadline: (b + 1) flush intervals and the
    grace.
    """

    flush_interval: int
    grace: int

    def deadline(self, bucket: int) -> int:
        """The least record time that closes a bucket."""
        return (bucket + 1) * self.flush_interval + self.grace

    def bucket_of(self, time: int) -> int:
        """The bucket that a record of this time falls into, if nothing else is known of it."""
        return (time - self.grace) // self.flush_interval

    def index_of_cut(self, bucket: int, times: I64s, present: int) -> int | None:
        """The place of the first record that closes the bucket."""
        deadline = self.deadline(bucket)
        if present < deadline or len(times) == 0:
            return None
        late = (times >= deadline) & (times < self.ahead_from(present))
        place = int(np.argmax(late))
        return place if late[place] else None

    def ahead_from(self, present: int) -> int:
        """The least record time that is ahead of the present, by more than brokers' clocks may differ."""
        return present + self.grace + 1

    def closes_several(self, bucket: int, time: int, present: int) -> bool:
        """Whether a record that closes the bucket would close the next one, too: after a silence, or because a
        broker's clock was ahead for this record.
        """
        return min(time, present) >= self.deadline(bucket + 1)

    def is_overdue(self, bucket: int, present: int) -> bool:
        """Whether a bucket is to be closed though no record has done so: its deadline passed a grace ago."""
        return present >= self.deadline(bucket) + self.grace

    def ends_at(self, bucket: int, pinned: PinnedEnd) -> bool:
        """Whether a bucket ends where the log was pinned, unless a record below that closes it."""
        return self.is_overdue(bucket, pinned.present)
