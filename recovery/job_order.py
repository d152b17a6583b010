"""The order of replay jobs: those whose records Kafka will delete soonest come first. Pure functions."""

from collections.abc import Iterable
from dataclasses import dataclass

from strandline.recovery.cutting import Cutting
from strandline.store.jobs import Job


@dataclass(frozen=True, slots=True)
class JobOrder:
    """The order of jobs by their deletion times. `retention` is how long the topic keeps its records, in milliseconds;
    None for no limit.
    """

    cutting: Cutting
    retention: int | None

    def deleted_at(self, bucket: int) -> int | None:
        """The earliest time at which Kafka may delete the first record of a bucket by age; None if never.

        The first record of a bucket is at least as new as the deadline of the previous bucket.
        """
        return None if self.retention is None else self.cutting.deadline(bucket - 1) + self.retention

    def time_left(self, bucket: int, now: int) -> int | None:
        """How many milliseconds are left to read a bucket; negative once its records may have been deleted."""
        deleted_at = self.deleted_at(bucket)
        return None if deleted_at is None else deleted_at - now

    def ordered(self, jobs: Iterable[Job]) -> list[Job]:
        """Jobs of any shards, most urgent first: least time left, then bucket, then shard."""
        return sorted(jobs, key=lambda job: (self.deleted_at(job.bucket) or 0, job.bucket, job.shard))


def min_time_left(jobs: Iterable[Job], job_order: JobOrder, now: int) -> int | None:
    """The time left for the most urgent job, which is the margin of a recovery; None if there is no deadline."""
    left = [job_order.time_left(job.bucket, now) for job in jobs]
    return min((time for time in left if time is not None), default=None)
