"""What a job leaves for the node: which segments it wrote, and what its records say of their keys.

It lies in the store as rows under the job's attempt. The row of kind `RESULT` is written last: a job whose result can't
be found is not done, whatever else it wrote.
"""

from dataclasses import dataclass

from strandline.store.jobs import Job
from strandline.store.rows import GroupRow, IndexBucketRows, LateSamples

RESULT, SUMMARY, KEYS, FAULTS = "result", "summary", "keys", "faults"


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """The segments of one group that a job wrote, as the manifest will tell of them."""

    group: int
    segments: int
    series: int
    samples: int
    least_time: int | None
    greatest_time: int | None
    checksum: bytes
    codec_version: int
    late: tuple[LateSamples, ...] = ()

    def row(
        self,
        bucket: int,
        attempt: str,
        *,
        expires: int,
        data_expires: int,
        written_by: str,
        written_at: int,
        index: IndexBucketRows | None,
    ) -> GroupRow:
        """The manifest's row."""
        return GroupRow(
            bucket=bucket,
            group=self.group,
            attempt=attempt,
            segments=self.segments,
            series=self.series,
            samples=self.samples,
            least_time=self.least_time,
            greatest_time=self.greatest_time,
            checksum=self.checksum,
            codec_version=self.codec_version,
            expires=expires,
            data_expires=data_expires,
            written_by=written_by,
            written_at=written_at,
            late=self.late,
            index=index,
        )


@dataclass(frozen=True, slots=True)
class RecordCounts:
    """What was read, and what was left out of it. As the shard counts the same."""

    records: int = 0
    bytes: int = 0
    samples: int = 0
    too_old: int = 0
    too_far_ahead: int = 0
    faults: int = 0
    skipped_histograms: int = 0
    skipped_exemplars: int = 0
    skipped_metadata: int = 0
    dropped_series: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class JobResult:
    """A job that is done. `groups` has each group that it was to write, those without a sample too. `data_expires` is
    when its segments go.
    """

    groups: tuple[StoredGroup, ...]
    counts: RecordCounts
    data_expires: int


def attempt_of(job: Job) -> str:
    """The attempt under which a leased job writes: no other lease of it, and no other plan, has the same."""
    return f"{job.plan}.{job.epoch}"
