"""Whether closed buckets have all records of their time: state of one shard, without I/O.

A shard that is behind may close a bucket too early: a broker whose clock was ahead dated a record, the shard reads it
only once the present has reached that time, and records of the bucket from a broker with another clock follow it. So
the end of a bucket is unconfirmed until everything is read that had reached the log by the end of the bucket's time. It
is then confirmed, unless one of the records that were read after it has a time before that. In that case the hour is
ready only with the next bucket whose end is confirmed.
"""

from strandline.arrays import I64s
from strandline.recovery.cutting import Cutting


class EndConfirmation:
    """Confirms the ends of closed buckets."""

    def __init__(self, cutting: Cutting) -> None:
        self._cutting = cutting
        self._pending: list[int] = []

    @property
    def is_pending(self) -> bool:
        """Whether an end may still be confirmed."""
        return bool(self._pending)

    def closed(self, bucket: int, complete_at: int) -> bool:
        """A bucket was closed. Everything that had reached the log at `complete_at` is in it or in older ones. Returns
        whether its end is confirmed by that.
        """
        is_confirmed = complete_at >= self._cutting.end_of(bucket)
        if not is_confirmed:
            self._pending.append(bucket)
        return is_confirmed

    def read(self, times: I64s) -> None:
        """Records after these ends were read. One without a time may belong to any of the buckets."""
        if self._pending and len(times):
            least = int(times.min())
            self._pending = [bucket for bucket in self._pending if self._cutting.end_of(bucket) <= least]

    def confirmed(self, complete_at: int) -> list[int]:
        """The buckets whose ends are confirmed now that everything is read that had reached the log at `complete_at`;
        each is returned once.
        """
        found = [bucket for bucket in self._pending if self._cutting.end_of(bucket) <= complete_at]
        if found:
            self._pending = [bucket for bucket in self._pending if bucket not in found]
        return found

    def give_up(self) -> None:
        """Leave the remaining ends unconfirmed."""
        self._pending = []
