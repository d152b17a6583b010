"""The report of `strandline recover plan`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from strandline.errors import ExitCode, StrandlineError
from strandline.node.output import Block, Table
from strandline.node.recovering.formatting import count, duration, moment, size
from strandline.node.recovering.shard_plan import FoundPlan
from strandline.recovery.estimates import NOTHING, Estimate, IndexSource, Rates, estimate, total_seconds
from strandline.recovery.job_order import JobOrder, min_time_left
from strandline.recovery.offset_policy import DataLost, StartFresh

_MAX_SHOWN = 50


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """One replay job. `time_left_seconds` is None if Kafka keeps records forever. `is_done`: it was already run."""

    shard: int
    bucket: int
    from_time: str
    start: int
    end: int
    groups: int
    wants_keys: bool
    records: int
    bytes: int | None
    time_left_seconds: float | None
    is_done: bool


@dataclass(frozen=True, slots=True)
class PlannedShard:
    """One shard. `reads_from` is the offset where a start continues, `tail` the number of offsets after the last
    complete bucket, which the shard reads itself. `problem` is set if the start needs an operator's decision.
    """

    shard: int
    first_start: bool
    reads_from: int | None
    log_start: int | None
    log_end: int | None
    source: IndexSource | None
    new_cuts: int
    empty_buckets: int
    jobs: tuple[PlannedJob, ...]
    records: int
    bytes: int | None
    seconds: float | None
    tail: int
    time_left_seconds: float | None
    problem: str = ""
    remedy: str = ""
    data_lost: bool = False

    @classmethod
    def of(
        cls, shard: int, found: FoundPlan, source: IndexSource, job_order: JobOrder, *, rates: Rates, now: int
    ) -> "PlannedShard":
        """The plan of a shard."""
        left = found.estimate(rates)
        return cls(
            shard=shard,
            first_start=isinstance(found.decision, StartFresh),
            reads_from=found.decision.offset,
            log_start=found.ends.start,
            log_end=found.ends.last_stable,
            source=source,
            new_cuts=found.new_cuts,
            empty_buckets=len(found.empty),
            jobs=_jobs(shard, found, job_order, rates, now),
            records=left.records,
            bytes=left.bytes,
            seconds=left.seconds,
            tail=found.tail,
            time_left_seconds=_seconds(min_time_left(found.to_do(), job_order, now)),
        )

    @classmethod
    def refused(cls, shard: int, error: StrandlineError) -> "PlannedShard":
        """A shard whose start would be refused."""
        return cls(
            shard=shard,
            first_start=False,
            reads_from=None,
            log_start=None,
            log_end=None,
            source=None,
            new_cuts=0,
            empty_buckets=0,
            jobs=(),
            records=0,
            bytes=0,
            seconds=0.0,
            tail=0,
            time_left_seconds=None,
            problem=error.message,
            remedy=error.remedy,
            data_lost=isinstance(error, DataLost),
        )

    @property
    def estimate(self) -> Estimate:
        """The estimate of what is left to replay."""
        return Estimate(self.records, self.bytes, self.seconds)


@dataclass(frozen=True, slots=True)
class PlanReport:
    """The plans of the chosen shards, and the totals."""

    dataset: str
    topic: str
    kafka_retention_seconds: float | None
    shards: tuple[PlannedShard, ...]
    records: int
    bytes: int | None
    seconds: float | None

    @classmethod
    def of(
        cls, dataset: str, topic: str, job_order: JobOrder, rates: Rates, shards: Sequence[PlannedShard]
    ) -> "PlanReport":
        """The report of these shards. The time is that of one Spark session for all of them."""
        total = sum((shard.estimate for shard in shards), NOTHING)
        return cls(
            dataset=dataset,
            topic=topic,
            kafka_retention_seconds=_seconds(job_order.retention),
            shards=tuple(shards),
            records=total.records,
            bytes=total.bytes,
            seconds=total_seconds(total, rates),
        )

    @property
    def exit_code(self) -> ExitCode:
        """DATA_LOST if data was lost, else FAILED if a shard would not start."""
        if any(shard.data_lost for shard in self.shards):
            return ExitCode.DATA_LOST
        return ExitCode.FAILED if any(shard.problem for shard in self.shards) else ExitCode.OK

    def blocks(self) -> Iterable[Block]:
        """Tables and lines."""
        kept = duration(self.kafka_retention_seconds) if self.kafka_retention_seconds is not None else "unlimited"
        yield f"Dataset {self.dataset}, topic {self.topic}, retention {kept}."
        columns = ("shard", "reads from", "log", "index from", "new cuts", "jobs", "records", "bytes", "time", "left")
        yield Table((*columns, "tail"), tuple(_shard_row(shard) for shard in self.shards))
        for shard in self.shards:
            if shard.problem:
                yield f"Shard {shard.shard}: {shard.problem}"
                yield from [f"  {shard.remedy}"] if shard.remedy else []
        jobs = [job for shard in self.shards for job in shard.jobs if not job.is_done]
        if jobs:
            yield "Jobs, most urgent first:"
            yield from _job_table(jobs)
        if self.records:
            yield (
                f"To replay: {count(self.records)} records, {size(self.bytes)}, in about {duration(self.seconds)}."
                " Nothing was changed."
            )
        else:
            yield "Nothing to replay. Nothing was changed."


def _jobs(shard: int, found: FoundPlan, job_order: JobOrder, rates: Rates, now: int) -> tuple[PlannedJob, ...]:
    interval = job_order.cutting.flush_interval
    return tuple(
        PlannedJob(
            shard=shard,
            bucket=job.bucket,
            from_time=moment(job.bucket * interval),
            start=job.start,
            end=job.end,
            groups=len(job.groups),
            wants_keys=job.wants_keys,
            records=job.end - job.start,
            bytes=estimate([job], found.bytes_per_record, rates).bytes,
            time_left_seconds=_seconds(job_order.time_left(job.bucket, now)),
            is_done=job.bucket in found.done,
        )
        for job in job_order.ordered(found.jobs)
    )


def _shard_row(shard: PlannedShard) -> tuple[str, ...]:
    if shard.problem:
        return (str(shard.shard), "refused", *["-"] * 9)
    reads_from = f"{shard.reads_from}{' (first start)' if shard.first_start else ''}"
    return (
        str(shard.shard),
        reads_from,
        f"[{shard.log_start}, {shard.log_end})",
        str(shard.source),
        count(shard.new_cuts),
        count(sum(not job.is_done for job in shard.jobs)),
        count(shard.records),
        size(shard.bytes),
        duration(shard.seconds),
        duration(shard.time_left_seconds),
        count(shard.tail),
    )


def _job_table(jobs: Sequence[PlannedJob]) -> Iterable[Block]:
    ordered = sorted(jobs, key=lambda job: (job.bucket, job.shard))
    columns = ("shard", "bucket", "from", "offsets", "groups", "keys", "records", "bytes", "left")
    rows = tuple(
        (
            str(job.shard),
            str(job.bucket),
            job.from_time,
            f"[{job.start}, {job.end})",
            str(job.groups),
            "yes" if job.wants_keys else "no",
            count(job.records),
            size(job.bytes),
            duration(job.time_left_seconds),
        )
        for job in ordered[:_MAX_SHOWN]
    )
    yield Table(columns, rows)
    if len(ordered) > _MAX_SHOWN:
        yield f"and {count(len(ordered) - _MAX_SHOWN)} more, see --output json."


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
