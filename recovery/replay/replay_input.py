"""What every task of a wave has to know, as values that travel to wherever the task runs.

A *wave* is what is read in one go: jobs of one or more shards, contiguous for each shard. A job's series, in the order
of (group, metric, key), are divided into *units* before anything is read: one unit is merged and written by one task.
A unit has a number in its job, and another one in the wave.
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

# A result is there for longer than its job: the node reads it once the job is done.
RESULT_MARGIN_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """What holds for every job of a dataset, as for its shards. Segments live for `time_to_live` from when they are
    written. A unit has about `unit_samples` samples at the most.
    """

    groups: int
    flush_interval: int
    record_limits: Limits
    sample_limits: SampleLimits
    time_to_live: int
    unit_samples: int = 8_000_000


def data_life(job: Job, settings: ReplaySettings) -> Lifetime:
    """How long a job's segments live: from the present of its plan on, no earlier than from its bucket's end.

    No worker's clock counts. The date must not be later than when the store lets go of the segments, or rows would name
    what is gone; the length counts from a write that comes after the plan was made, and so ends no earlier than the
    date. The date must not be earlier than the bucket's end allows either, or what is there would count as expired.
    """
    end = (job.bucket + 1) * settings.flush_interval
    planned = planned_at(job.plan)
    if planned is None:
        # Made by a version before. A bucket may be cut up to a flush interval before its end, if its log is lost.
        return Lifetime(settings.flush_interval + settings.time_to_live, end + settings.time_to_live)
    return Lifetime.until(max(planned, end) + settings.time_to_live, planned)


@dataclass(frozen=True, slots=True, order=True)
class SeriesBound:
    """A place in the order of a job's series: what is at it, or behind it, belongs to the next unit."""

    group: int
    metric: int
    key_high: int
    key_low: int


@dataclass(frozen=True, slots=True)
class JobInput:
    """One leased job of a wave. `bounds` rise, and stand between its units; the first of them is `first_unit` of the
    wave's.
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
        """A job that is leased. `now` is the worker's clock, which the date of its result follows and nothing else."""
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
        """How many units it has."""
        return len(self.bounds) + 1

    @property
    def results(self) -> JobResultOf:
        """Where its result lies."""
        return JobResultOf(self.shard, self.bucket, self.attempt)

    def segments(self, group: int) -> SegmentsOf:
        """Where a group's segments lie."""
        return SegmentsOf(self.shard, self.bucket, group, self.attempt)


@dataclass(frozen=True, slots=True)
class ReplayInput:
    """A wave. Its jobs stand in the order of their units."""

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
        made: list[JobInput] = []
        for job in jobs:
            first_unit = made[-1].first_unit + made[-1].units if made else 0
            made.append(JobInput.of(job, settings, now=now, bounds=bounds.get(job, ()), first_unit=first_unit))
        return cls(settings, tuple(made))

    @property
    def units(self) -> int:
        """How many units all jobs have."""
        return sum(job.units for job in self.jobs)

    def job_of_unit(self, unit: int) -> JobInput:
        """The job that a unit of the wave belongs to."""
        return next(job for job in reversed(self.jobs) if job.first_unit <= unit)


def waves_of(jobs: Sequence[Job]) -> list[list[Job]]:
    """Jobs in as few waves as their ranges allow: within each a shard's jobs are contiguous and in order."""
    by_shard: dict[ShardId, list[Job]] = defaultdict(list)
    for job in sorted(jobs, key=lambda one: (one.shard, one.start, one.end)):
        by_shard[job.shard].append(job)
    waves: list[list[Job]] = []
    for some in by_shard.values():
        number = 0
        stretch = [some[0]]
        for before, job in pairwise(some):
            if before.end != job.start:
                _put(waves, number, stretch)
                number, stretch = number + 1, []
            stretch.append(job)
        _put(waves, number, stretch)
    return waves


def _put(waves: list[list[Job]], number: int, jobs: list[Job]) -> None:
    if number == len(waves):
        waves.append([])
    waves[number] += jobs
