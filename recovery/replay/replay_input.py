"""What every task of a wave has to know, as values that are sent to where the task runs.

A *wave* is a set of jobs that run together, contiguous for each shard. A job's series, ordered by (group, metric, key),
are divided into *units* before anything is read: one task merges and writes one unit. A unit has a number in its job
and another one in the wave.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from strandline.index.sample_limits import SampleLimits
from strandline.recovery.plan_id import planned_at
from strandline.recovery.replay.job_result import attempt_of
from strandline.store.jobs import Job, JobResultOf
from strandline.store.rows import Lifetime, SegmentsOf, ShardId
from strandline.wire.decode import Limits

# A result outlives its job, because the owner reads it after the job is done.
RESULT_MARGIN_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """The settings of a dataset's jobs, the same as those of its shards. Segments live for `time_to_live` from when
    they are written. A unit has at most about `unit_samples` samples.
    """

    groups: int
    flush_interval: int
    record_limits: Limits
    sample_limits: SampleLimits
    time_to_live: int
    unit_samples: int = 8_000_000


def data_life(job: Job, settings: ReplaySettings) -> Lifetime:
    """The lifetime of a job's segments. It counts from the present of its plan, but at least from its bucket's end.

    No worker's clock is used. The expiry time must not be later than when the store removes the segments, or rows would
    reference segments that are gone. The lifetime counts from a write that is after the plan was made, so it ends at or
    after the expiry time. The expiry time must not be earlier than the bucket's end allows either, or existing data
    would count as expired.
    """
    end = (job.bucket + 1) * settings.flush_interval
    planned = planned_at(job.plan)
    if planned is None:
        # Plan of an older version. A bucket may be cut up to a flush interval before its end, if its records are lost.
        return Lifetime(settings.flush_interval + settings.time_to_live, end + settings.time_to_live)
    return Lifetime.until(max(planned, end) + settings.time_to_live, planned)


@dataclass(frozen=True, slots=True, order=True)
class SeriesBound:
    """A position in the order of a job's series. Series at or after it belong to the next unit."""

    group: int
    metric: int
    key_high: int
    key_low: int


@dataclass(frozen=True, slots=True)
class JobInput:
    """One leased job of a wave. `bounds` are the ascending bounds between its units; `first_unit` is the number of the
    first unit in the wave.
    """

    shard: ShardId
    bucket: int
    start: int
    end: int
    groups: frozenset[int]
    wants_keys: bool
    attempt: str
    data_life: Lifetime
    result_life: Lifetime
    bounds: tuple[SeriesBound, ...] = ()
    first_unit: int = 0

    @classmethod
    def of(
        cls, job: Job, settings: ReplaySettings, *, now: int, bounds: Sequence[SeriesBound] = (), first_unit: int = 0
    ) -> "JobInput":
        """The input for a leased job. `now` is the worker's clock; only the expiry time of the job's result depends on
        it.
        """
        return cls(
            job.shard,
            job.bucket,
            job.start,
            job.end,
            job.groups,
            job.wants_keys,
            attempt_of(job),
            data_life(job, settings),
            Lifetime.from_present(max(now, planned_at(job.plan) or 0), job.life + RESULT_MARGIN_MS),
            tuple(bounds),
            first_unit,
        )

    @property
    def units(self) -> int:
        """The number of units."""
        return len(self.bounds) + 1

    @property
    def results(self) -> JobResultOf:
        """The key of its result."""
        return JobResultOf(self.shard, self.bucket, self.attempt)

    def segments(self, group: int) -> SegmentsOf:
        """The key of a group's segments."""
        return SegmentsOf(self.shard, self.bucket, group, self.attempt)


@dataclass(frozen=True, slots=True)
class ReplayInput:
    """A wave. Its jobs are in the order of their units."""

    settings: ReplaySettings
    jobs: tuple[JobInput, ...]

    @classmethod
    def of(
        cls,
        jobs: Sequence[Job],
        settings: ReplaySettings,
        *,
        now: int,
        bounds: Mapping[Job, Sequence[SeriesBound]],
    ) -> "ReplayInput":
        """A wave of leased jobs, each with the bounds between its units."""
        inputs: list[JobInput] = []
        for job in jobs:
            first_unit = inputs[-1].first_unit + inputs[-1].units if inputs else 0
            inputs.append(JobInput.of(job, settings, now=now, bounds=bounds.get(job, ()), first_unit=first_unit))
        return cls(settings, tuple(inputs))

    @property
    def units(self) -> int:
        """The number of units of all jobs."""
        return sum(job.units for job in self.jobs)

    def job_of_unit(self, unit: int) -> JobInput:
        """The job that a unit of the wave belongs to."""
        return next(job for job in reversed(self.jobs) if job.first_unit <= unit)


def waves_of(jobs: Sequence[Job]) -> list[list[Job]]:
    """Jobs in as few waves as their ranges allow. Within a wave, a shard's jobs are contiguous and in order."""
    by_shard: dict[ShardId, list[Job]] = defaultdict(list)
    for job in sorted(jobs, key=lambda one: (one.shard, one.start, one.end)):
        by_shard[job.shard].append(job)
    waves: list[list[Job]] = []
    for some in by_shard.values():
        number = 0
        contiguous = [some[0]]
        for before, job in pairwise(some):
            if before.end != job.start:
                _put(waves, number, contiguous)
                number, contiguous = number + 1, []
            contiguous.append(job)
        _put(waves, number, contiguous)
    return waves


def _put(waves: list[list[Job]], number: int, jobs: list[Job]) -> None:
    if number == len(waves):
        waves.append([])
    waves[number] += jobs
