"""The durations that determine the lifetime of buckets and keys, and what follows from them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BucketPolicy:
    """Times are in milliseconds. Bucket b covers the wall-clock time from b * flush_interval to (b + 1) *
    flush_interval.
    """

    flush_interval: int
    retention: int
    margin: int
    stale_after: int

    def __post_init__(self) -> None:
        if not 0 < self.flush_interval <= self.retention or self.margin < 0:
            raise ValueError(
                f"invalid policy: flush interval {self.flush_interval} ms, retention {self.retention} ms, "
                f"margin {self.margin} ms"
            )
        # Activity is only known for the retention, so nothing older can keep a key live.
        if not 0 < self.stale_after <= self.retention:
            raise ValueError(
                f"stale_after = {self.stale_after} ms must be between 1 and the retention, {self.retention} ms"
            )

    @property
    def kept_buckets(self) -> int:
        """N: how many buckets before the newest stored one a key's record may be before it is rolled over."""
        return -(-self.retention // self.flush_interval)

    @property
    def live_buckets(self) -> int:
        """K: a key stays live while it has a sample in one of this many newest buckets."""
        return max(1, -(-self.stale_after // self.flush_interval))

    @property
    def time_to_live(self) -> int:
        """The lifetime of a stored bucket."""
        return self.retention + self.margin

    def bucket_of(self, time: int) -> int:
        """The bucket that covers a time."""
        return time // self.flush_interval

    def end_of(self, bucket: int) -> int:
        """The end of a bucket (exclusive)."""
        return (bucket + 1) * self.flush_interval

    def expected_expiry(self, bucket: int) -> int:
        """The earliest time at which a bucket that is stored under this policy can expire."""
        return self.end_of(bucket) + self.time_to_live

    def purge_before(self, bucket: int) -> int:
        """Once a bucket is stored, keys that ended before this time are purged."""
        return self.end_of(bucket) - self.retention
