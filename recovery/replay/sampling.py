"""Samples a few records of each job before a wave, to estimate how much there is to do and where.

Offsets are evenly spaced; where an offset has no record, the next record is used. Undecodable records count as records
without samples.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from strandline.recovery.replay.replay_input import ReplaySettings, SeriesBound
from strandline.recovery.replay.units import SampledSeries, unit_bounds
from strandline.store.jobs import Job
from strandline.wire.decode import decode_batch

MAX_SAMPLED, MIN_SAMPLED = 32, 4
# One of this many records is sampled, within those limits.
_RECORDS_PER_SAMPLE = 64


class RecordSampler(Protocol):
    """Reads single records of a topic. The node uses a Kafka client for this, because Spark can't."""

    def __call__(self, shard: int, offsets: Sequence[int], end: int) -> Sequence[bytes]:
        """The values of the first committed records at or after each of these ascending offsets, and before `end`.

        Fewer if there are no more records. No record is returned twice.
        """
        ...


@dataclass(frozen=True, slots=True)
class JobSample:
    """Estimates for a job from a few of its records. The number of its offsets is used as the number of its records."""

    job: Job
    samples_per_record: float
    bytes_per_record: float
    series: SampledSeries | None

    @property
    def records(self) -> int:
        """The number of offsets, some of which may have no record."""
        return self.job.end - self.job.start

    @property
    def samples(self) -> float:
        """The estimated number of samples in all records."""
        return self.records * self.samples_per_record

    def bounds(self, groups: int, unit_samples: int) -> tuple[SeriesBound, ...]:
        """The bounds between units of at most about `unit_samples` samples."""
        if self.series is None:
            return ()
        return unit_bounds(
            self.series, groups=groups, kept=self.job.groups, wants_keys=self.job.wants_keys, unit_samples=unit_samples
        )


def sampled_offsets(start: int, end: int) -> list[int]:
    """The offsets to sample in a range; fewer for a small range."""
    records = end - start
    wanted = min(records, MAX_SAMPLED, max(MIN_SAMPLED, records // _RECORDS_PER_SAMPLE))
    return [start + records * number // wanted for number in range(wanted)]


def sample_job(job: Job, settings: ReplaySettings, sampler: RecordSampler) -> JobSample:
    """Read some of a job's records."""
    offsets = sampled_offsets(job.start, job.end)
    return sample_from_values(job, settings, sampler(job.shard.shard, offsets, job.end) if offsets else [])


def sample_from_values(job: Job, settings: ReplaySettings, values: Sequence[bytes]) -> JobSample:
    """The estimates from these records of a job."""
    if not values:
        return JobSample(job, 0.0, 0.0, None)
    columns = decode_batch(values, settings.record_limits)
    series = SampledSeries.of(columns, records=job.end - job.start, sampled=len(values))
    return JobSample(job, len(columns.time) / len(values), sum(map(len, values)) / len(values), series)
