"""Encodes one group of one bucket into segments and its manifest row. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from strandline.store.late_samples import late_samples
from strandline.store.rows import GroupRow, IndexBucketRows, LateSamples, Segment
from strandline.store.segment_codec import VERSION, encode_run, runs_checksum
from strandline.store.series_run import SeriesRun


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """The segments of one group that are in the store, as its manifest row describes them."""

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
        """Make the manifest row."""
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
class GroupWrite:
    """The encoded segments of a group under an attempt, with their sums."""

    bucket: int
    group: int
    attempt: str
    segments: Sequence[Segment] = field(repr=False)
    checksum: bytes
    series: int
    samples: int
    least_time: int | None
    greatest_time: int | None
    late: tuple[LateSamples, ...]

    @property
    def stored(self) -> StoredGroup:
        """The description for the manifest, valid once the segments are stored."""
        return StoredGroup(
            group=self.group,
            segments=len(self.segments),
            series=self.series,
            samples=self.samples,
            least_time=self.least_time,
            greatest_time=self.greatest_time,
            checksum=self.checksum,
            codec_version=VERSION,
            late=self.late,
        )


def encode_group(run: SeriesRun, bucket: int, group: int, attempt: str, flush_interval: int) -> GroupWrite:
    """Encode a group's run. The same run always gives the same segments."""
    segments = encode_run(run)
    return GroupWrite(
        bucket=bucket,
        group=group,
        attempt=attempt,
        segments=segments,
        checksum=runs_checksum(segments),
        series=len(run),
        samples=run.samples,
        least_time=int(run.time.min()) if run.samples else None,
        greatest_time=int(run.time.max()) if run.samples else None,
        late=late_samples(run.time, bucket, flush_interval),
    )
