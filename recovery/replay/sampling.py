"""Looking at a few records of each job, to know before a wave how much there is to do and where.

Evenly spaced offsets; where an offset has no record, the next one that has. Records that are no requests count as ones
without a sample.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from strandline.recovery.replay.replay_input import ReplaySettings, SeriesBound
from strandline.recovery.replay.units import SampledSeries, unit_bounds
from strandline.store.jobs import Job
from strandline.wire.decode import decode_batch

MAX_SAMPLED, MIN_SAMPLED = 32, 4
# One record of so many is looked at, within those limits.
_RECORDS_PER_SAMPLE = 64


class RecordSampler(Protocol):
    """Reads single records of a topic. The node has a client of Kafka for it; Spark has none that can do this."""

    def __call__(self, shard: int, offsets: Sequence[int], end: int) -> Sequence[bytes]:
        """The values of the first committed records at or behind each of these offsets, which rise, and below `end`.

        Fewer than were asked for, where there are no more; no record twice.
        """
        ...


@dataclass(frozen=True, slots=True)
class JobSample:
    """What a few of a job's records say of all of them. As many records are reckoned with as there are offsets."""

    job: Job
    samples_per_record: float
    bytes_per_record: float
    series: SampledSeries | None

    @property
    def records(self) -> int:
        """Offsets, of which some may have no record."""
        return self.job.end - self.job.start

    @property
    def samples(self) -> float:
        """Of all records together."""
        return self.records * self.samples_per_record

    def bounds(self, groups: int, unit_samples: int) -> tuple[SeriesBound, ...]:
        """The bounds between units of about so many samples at the most."""
        if self.series is None:
            return ()
        return unit_bounds(
            self.series, groups=groups, kept=self.job.groups, wants_keys=self.job.wants_keys, unit_samples=unit_samples
        )


def sampled_offsets(start: int, end: int) -> list[int]:
    """The offsets to look at, of a range: few of a small one."""
    records = end - start
    wanted = min(records, MAX_SAMPLED, max(MIN_SAMPLED, records // _RECORDS_PER_SAMPLE))
    return [start + records * number // wanted for number in range(wanted)]


def sample_job(job: Job, settings: ReplaySettings, sampler: RecordSampler) -> JobSample:
    """Read some of a job's records."""
    offsets = sampled_offsets(job.start, job.end)
    return sample_from_values(job, settings, sampler(job.shard.shard, offsets, job.end) if offsets else [])


def sample_from_values(job: Job, settings: ReplaySettings, values: Sequence[bytes]) -> JobSample:
    """What these records of a job say."""
    if not values:
        return JobSample(job, 0.0, 0.0, None)
    columns = decode_batch(values, settings.record_limits)
    series = SampledSeries.of(columns, records=job.end - job.start, sampled=len(values))
    return JobSample(job, len(columns.time) / len(values), sum(map(len, values)) / len(values), series)
