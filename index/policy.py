"""The lengths of time that decide what happens to buckets and keys, as one value with what follows from them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BucketPolicy:
    """Times in milliseconds. Bucket b covers wall-clock time from b x flush interval up to (b + 1) x flush interval."""

    flush_interval: int
    retention: int
    margin: int
    stale_after: int

    def __post_init__(self) -> None:
        if not 0 < self.flush_interval <= self.retention or self.margin < 0:
            raise ValueError(
                f"no policy: a flush interval of {self.flush_interval} ms, a retention of {self.retention} ms"
            )
        # Who was active is remembered for the retention only, so nothing older can keep a key live.
        if not 0 < self.stale_after <= self.retention:
            raise ValueError(
                f"stale_after = {self.stale_after} ms must lie between 1 and the retention, {self.retention} ms"
            )

    @property
    def kept_buckets(self) -> int:
        """N: how many buckets back from the newest stored one a key's record may lie before it is rolled over."""
        return -(-self.retention // self.flush_interval)

    @property
    def live_buckets(self) -> int:
        """K: a key stays live as long as it had a sample in one of so many of the newest buckets."""
        return max(1, -(-self.stale_after // self.flush_interval))

    @property
    def time_to_live(self) -> int:
        """How long a stored bucket lives."""
        return self.retention + self.margin

    def bucket_of(self, time: int) -> int:
        """The bucket that covers a moment."""
        return time // self.flush_interval

    def end_of(self, bucket: int) -> int:
        """The first moment behind a bucket."""
        return (bucket + 1) * self.flush_interval

    def expected_expiry(self, bucket: int) -> int:
        """The earliest moment at which a bucket stored under this policy can expire."""
        return self.end_of(bucket) + self.time_to_live

    def purge_before(self, bucket: int) -> int:
        """Once a bucket is stored, keys that ended before this moment go."""
        return self.end_of(bucket) - self.retention
