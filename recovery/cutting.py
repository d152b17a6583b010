"""Where buckets end: by record time while records come, and by the clock while none do. Pure functions over values."""

from dataclasses import dataclass

import numpy as np

from strandline.arrays import I64s
from strandline.recovery.log_ends import LogEnds


@dataclass(frozen=True, slots=True)
class Cutting:
    """Bucket b is closed by the first record whose time is at least (b + 1) flush intervals and the grace."""

    flush_interval: int
    grace: int

    def deadline(self, bucket: int) -> int:
        """The least record time that closes a bucket."""
        return (bucket + 1) * self.flush_interval + self.grace

    def bucket_of(self, time: int) -> int:
        """The bucket that a record of this time falls into, if nothing else is known of it."""
        return (time - self.grace) // self.flush_interval

    def place_of_cut(self, bucket: int, times: I64s) -> int | None:
        """The place of the first record that closes the bucket."""
        late = times >= self.deadline(bucket)
        place = int(np.argmax(late)) if len(late) else 0
        return place if len(late) and late[place] else None

    def closes_idle(self, bucket: int, position: int, ends: LogEnds, asked_at: int) -> bool:
        """Whether a bucket ends at the position though no record closed it: all that the log had when it was asked,
        past the deadline, has been read, and no transaction is open that could still bring something before that.

        A log that ends before the position is another one than was read: nothing follows from it.
        """
        return asked_at >= self.deadline(bucket) and position == ends.last_stable == ends.high
