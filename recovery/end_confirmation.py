"""Whether a closed bucket has all records of its time: state of one shard, without I/O.

A shard that is behind may close a bucket too early: a broker whose clock was ahead dated a record, the shard reads it
only once the present has reached that time, and records of the bucket from a broker with another clock follow it. So
the end of a bucket is unconfirmed until everything is read that had reached the log by the end of the bucket's time. It
is then confirmed, unless one of the records that were read after it has a time before that. In that case the hour is
ready only once the next bucket is stored.
"""

from strandline.arrays import I64s
from strandline.recovery.cutting import Cutting


class EndConfirmation:
    """Confirms the end of the newest closed bucket. That of an older one matters no longer once a newer one is
    confirmed: an hour waits up to the next bucket whose end is confirmed.
    """

    def __init__(self, cutting: Cutting) -> None:
        self._cutting = cutting
        self._bucket: int | None = None

    @property
    def is_pending(self) -> bool:
        """Whether an end may still be confirmed."""
        return self._bucket is not None

    def closed(self, bucket: int, complete_at: int) -> bool:
        """A bucket was closed. Everything that had reached the log at `complete_at` is in it or in older ones. Returns
        whether its end is confirmed by that.
        """
        is_confirmed = complete_at >= self._cutting.end_of(bucket)
        self._bucket = None if is_confirmed else bucket
        return is_confirmed

    def read(self, times: I64s) -> None:
        """Records after the end were read. One without a time may belong to the bucket as well."""
        if self._bucket is not None and len(times) and int(times.min()) < self._cutting.end_of(self._bucket):
            self._bucket = None

    def confirmed(self, complete_at: int) -> int | None:
        """The bucket whose end is confirmed now that everything is read that had reached the log at `complete_at`;
        returned once.
        """
        bucket = self._bucket
        if bucket is None or complete_at < self._cutting.end_of(bucket):
            return None
        self._bucket = None
        return bucket

    def give_up(self) -> None:
        """Leave the end unconfirmed."""
        self._bucket = None
