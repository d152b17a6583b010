"""Reports about jobs of any kind, for the `strandline job` commands and for HTTP.

The HTTP front imports this module: it must not import what reads files or encodes records.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from strandline.errors import ExitCode
from strandline.jobs.bad_records import printable
from strandline.jobs.counts import Counts, landed_of, progress_of
from strandline.jobs.outcome import SamplesByTime
from strandline.jobs.rate import rate_of
from strandline.jobs.report import BadLine, job_report
from strandline.jobs.transitions import expires_at
from strandline.node.output import Block, Table
from strandline.node.recovering.formatting import count, duration, moment, size
from strandline.store.bulk_jobs import BulkJob, BulkJobState, BulkPart
from strandline.store.jobs import JobState

_MAX_SHOWN = 50
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class CountLabels:
    """How the counts of a job are labelled, by its kind. `unit` is the unit of what it produces."""

    read: str = "records read"
    unit: str = "samples"
    done: str = "samples landed"
    kept: str = "sent to Kafka"
    kept_unit: str = "records"

    def landed(self, counts: Counts) -> int:
        """How much a job has produced, in its unit."""
        return counts.sent if self.unit == "messages" else counts.samples


_DEFAULT_LABELS = CountLabels()
_COUNT_LABELS = {
    "export": CountLabels("samples read", "samples", "samples exported", "written", "files"),
    "send": CountLabels("series read", "messages", "messages sent"),
}


@dataclass(frozen=True, slots=True)
class FailedPart:
    """A part that has failed permanently."""

    part: int
    failures: int
    reason: str


@dataclass(frozen=True, slots=True)
class JobSummary:
    """A job in one line. `progress` is the share that is done, estimated for parts that are running. Times are
    milliseconds since the epoch. `landed` is what it has produced, in the `unit` of its kind.
    """

    job: str
    kind: str
    state: BulkJobState
    wanted: str
    reason: str
    created_at: int
    changed_at: int
    due_at: int
    expires_at: int | None
    parts: int
    parts_done: int
    parts_leased: int
    parts_failed: int
    progress: float
    counts: Counts
    landed: int
    unit: str

    @classmethod
    def of_job(cls, job: BulkJob, parts: Sequence[BulkPart]) -> "JobSummary":
        """The summary of a job and its parts."""
        return cls(**_summary(job, parts))

    @property
    def exit_code(self) -> ExitCode:
        """FAILED if the job has failed, is broken or was cancelled."""
        failed = (BulkJobState.FAILED, BulkJobState.BROKEN, BulkJobState.CANCELLED)
        return ExitCode.FAILED if self.state in failed else ExitCode.OK

    def expiry_warning(self, now: int) -> str:
        """A warning that the job will be cancelled within a day unless it is resumed; empty for other jobs."""
        if self.expires_at is None or self.expires_at - now > _DAY_MS:
            return ""
        left = duration(max(0, self.expires_at - now) / 1000)
        return f"Job {self.job} is {self.state} and will be cancelled in {left}: `strandline job resume {self.job}`"


@dataclass(frozen=True, slots=True)
class JobStatus(JobSummary):
    """A job, and what its parts have done so far. `series` counts a series once per chunk, and is an upper bound.
    `rate` limits all workers together, in units per second; None for no limit.
    """

    times: SamplesByTime
    bad: dict[str, int]
    bad_lines: tuple[BadLine, ...]
    nulls: int
    failed_parts: tuple[FailedPart, ...]
    series: int = 0
    rate: float | None = None

    @classmethod
    def of(cls, job: BulkJob, parts: Sequence[BulkPart]) -> "JobStatus":
        """The status of a job and its parts."""
        done = job_report(parts)
        return cls(
            **_summary(job, parts),
            times=done.times,
            bad=done.bad,
            bad_lines=done.bad_lines,
            nulls=done.nulls,
            failed_parts=tuple(
                FailedPart(part.part, part.failures, part.reason) for part in parts if part.state is JobState.FAILED
            ),
            series=done.series,
            rate=rate_of(job),
        )

    def blocks(self) -> list[Block]:
        """Lines and tables."""
        state = f"{self.state}, to be {self.wanted}" if self.wanted else self.state.value
        found: list[Block] = [f"Job {self.job} ({self.kind}) is {state}{f': {self.reason}' if self.reason else ''}"]
        if self.expires_at is not None:
            found.append(f"It will be cancelled at {moment(self.expires_at)} unless it is resumed.")
        if self.rate is not None:
            found.append(f"Its workers together land at most {self.rate:,.10g} {self.unit} per second.")
        counts = self.counts
        labels = _COUNT_LABELS.get(self.kind, _DEFAULT_LABELS)
        found.append(
            Table(
                ("parts done", labels.read, labels.done, "bad records", labels.kept),
                (
                    (
                        f"{count(self.parts_done)} of {count(self.parts)}",
                        count(counts.records),
                        count(self.landed),
                        count(counts.bad),
                        f"{count(counts.sent)} {labels.kept_unit}, {size(counts.bytes)}",
                    ),
                ),
            )
        )
        if self.times.counts:
            first, last = min(self.times.counts), max(self.times.counts) + self.times.step_ms
            found.append(f"Samples are between {moment(first)} and {moment(last)}.")
        if self.series and self.kind == "import":
            found.append(
                f"At most {count(self.series)} series: a series that is in several chunks counts once per chunk."
            )
        if self.nulls:
            found.append(nulls_left_out(self.nulls))
        if self.bad:
            rows = sorted(self.bad.items(), key=lambda one: -one[1])
            found.append(Table(("bad records", "reason"), tuple((count(number), reason) for reason, number in rows)))
        if self.bad_lines:
            found.append(bad_line_table(self.bad_lines))
        found += [
            f"Part {part.part} failed {part.failures} times: {part.reason}" for part in self.failed_parts[:_MAX_SHOWN]
        ]
        return found


def nulls_left_out(number: int) -> str:
    """A line about values that are null."""
    return f"{count(number)} {'value is' if number == 1 else 'values are'} null: not imported, not errors."


def bad_line_table(lines: Sequence[BadLine]) -> Table:
    """A table of bad records and their positions."""
    rows = tuple(
        (one.uri, str(one.record.line or "?"), str(one.record.offset), one.record.reason, printable(one.record.excerpt))
        for one in lines
    )
    return Table(("file", "line", "byte", "reason", "text"), rows)


@dataclass(frozen=True, slots=True)
class JobList:
    """Jobs of a dataset."""

    dataset: str
    jobs: tuple[JobSummary, ...]

    def blocks(self) -> list[Block]:
        """A table."""
        if not self.jobs:
            return [f"Dataset {self.dataset} has no jobs."]
        rows = tuple(
            (
                one.job,
                one.kind,
                f"{one.state}, to be {one.wanted}" if one.wanted else one.state.value,
                f"{count(one.parts_done)} of {count(one.parts)}",
                f"{count(one.landed)} {one.unit}",
                count(one.counts.bad),
                moment(one.created_at),
            )
            for one in self.jobs
        )
        return [Table(("job", "kind", "state", "parts", "landed", "bad records", "planned"), rows)]


def _summary(job: BulkJob, parts: Sequence[BulkPart]) -> dict[str, Any]:
    landed = [landed_of(part) for part in parts]
    states = [part.state for part in parts]
    labels, counts = _COUNT_LABELS.get(job.kind, _DEFAULT_LABELS), Counts.total(landed)
    return {
        "job": job.job,
        "kind": job.kind,
        "state": job.state,
        "wanted": job.wanted.value,
        "reason": job.reason,
        "created_at": job.created_at,
        "changed_at": job.changed_at,
        "due_at": job.due_at,
        "expires_at": expires_at(job),
        "parts": job.parts,
        "parts_done": states.count(JobState.DONE),
        "parts_leased": states.count(JobState.LEASED),
        "parts_failed": states.count(JobState.FAILED),
        "progress": progress_of(states, landed, job.parts),
        "counts": counts,
        "landed": labels.landed(counts),
        "unit": labels.unit,
    }
