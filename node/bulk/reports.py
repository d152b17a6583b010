"""What the `strandline job` commands tell."""

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.errors import ExitCode
from strandline.jobs.counts import AttemptCounts, Counts
from strandline.jobs.importing.planning import ImportPlan
from strandline.jobs.outcome import SamplesByTime
from strandline.jobs.report import BadLine, job_report
from strandline.jobs.sources.compressed import compression_of
from strandline.jobs.transitions import expires_at
from strandline.node.output import Block, Table
from strandline.node.recovering.words import count, moment, size
from strandline.store.bulk_jobs import BulkJob, BulkJobState, BulkPart
from strandline.store.jobs import JobState

_MOST_SHOWN = 50


@dataclass(frozen=True, slots=True)
class FailedPart:
    """A part that has failed for good."""

    part: int
    failures: int
    reason: str


@dataclass(frozen=True, slots=True)
class JobStatus:
    """A job, and what its parts have done so far."""

    job: str
    kind: str
    state: BulkJobState
    wanted: str
    reason: str
    created_at: int
    expires_at: int | None
    parts: int
    parts_done: int
    parts_leased: int
    counts: Counts
    times: SamplesByTime
    bad: dict[str, int]
    bad_lines: tuple[BadLine, ...]
    failed_parts: tuple[FailedPart, ...]

    @classmethod
    def of(cls, job: BulkJob, parts: Sequence[BulkPart]) -> "JobStatus":
        """A job with its parts as they are now."""
        done = job_report(parts)
        running = [part for part in parts if not part.outcome]
        return cls(
            job=job.job,
            kind=job.kind,
            state=job.state,
            wanted=job.wanted.value,
            reason=job.reason,
            created_at=job.created_at,
            expires_at=expires_at(job),
            parts=job.parts,
            parts_done=sum(part.state is JobState.DONE for part in parts),
            parts_leased=sum(part.state is JobState.LEASED for part in parts),
            counts=Counts.total([done.counts, *(AttemptCounts.from_json(part.counts).total for part in running)]),
            times=done.times,
            bad=done.bad,
            bad_lines=done.bad_lines,
            failed_parts=tuple(
                FailedPart(part.part, part.failures, part.reason) for part in parts if part.state is JobState.FAILED
            ),
        )

    @property
    def exit_code(self) -> ExitCode:
        """Whether all is well with the job."""
        ill = (BulkJobState.FAILED, BulkJobState.BROKEN, BulkJobState.CANCELLED)
        return ExitCode.FAILED if self.state in ill else ExitCode.OK

    def blocks(self) -> list[Block]:
        """For people."""
        state = f"{self.state}, to be {self.wanted}" if self.wanted else self.state.value
        found: list[Block] = [f"Job {self.job} ({self.kind}) is {state}{f': {self.reason}' if self.reason else ''}"]
        if self.expires_at is not None:
            found.append(f"It will be cancelled at {moment(self.expires_at)} unless it is resumed.")
        counts = self.counts
        found.append(
            Table(
                ("parts done", "records read", "samples landed", "bad records", "sent to Kafka"),
                (
                    (
                        f"{count(self.parts_done)} of {count(self.parts)}",
                        count(counts.records),
                        count(counts.samples),
                        count(counts.bad),
                        f"{count(counts.sent)} records, {size(counts.bytes)}",
                    ),
                ),
            )
        )
        if self.times.counts:
            first, last = min(self.times.counts), max(self.times.counts) + self.times.step_ms
            found.append(f"Samples lie between {moment(first)} and {moment(last)}.")
        if self.bad:
            rows = sorted(self.bad.items(), key=lambda one: -one[1])
            found.append(Table(("bad records", "reason"), tuple((count(number), reason) for reason, number in rows)))
        if self.bad_lines:
            found.append(_bad_lines(self.bad_lines))
        found += [
            f"Part {part.part} failed {part.failures} times: {part.reason}" for part in self.failed_parts[:_MOST_SHOWN]
        ]
        return found


def _bad_lines(lines: Sequence[BadLine]) -> Table:
    rows = tuple(
        (one.uri, str(one.record.line or "?"), str(one.record.offset), one.record.reason, one.record.excerpt)
        for one in lines
    )
    return Table(("file", "line", "byte", "reason", "text"), rows)


@dataclass(frozen=True, slots=True)
class JobList:
    """All jobs of a dataset."""

    dataset: str
    jobs: tuple[JobStatus, ...]

    def blocks(self) -> list[Block]:
        """For people."""
        if not self.jobs:
            return [f"Dataset {self.dataset} has no jobs."]
        rows = tuple(
            (
                one.job,
                one.kind,
                one.state.value,
                f"{count(one.parts_done)} of {count(one.parts)}",
                count(one.counts.samples),
                count(one.counts.bad),
                moment(one.created_at),
            )
            for one in self.jobs
        )
        return [Table(("job", "kind", "state", "parts", "samples", "bad records", "planned"), rows)]


@dataclass(frozen=True, slots=True)
class PlannedSource:
    """A file of a plan."""

    uri: str
    size: int
    parts: int
    compression: str | None


@dataclass(frozen=True, slots=True)
class PlanReport:
    """What an import would read."""

    files: tuple[PlannedSource, ...]
    parts: int
    bytes: int
    oldest: int
    newest: int

    @classmethod
    def of(cls, plan: ImportPlan) -> "PlanReport":
        """A plan, told."""
        parts: dict[str, int] = {}
        sizes: dict[str, int] = {}
        for part in plan.parts:
            parts[part.uri] = parts.get(part.uri, 0) + 1
            sizes[part.uri] = sum(file.size for file in part.files)
        files = tuple(PlannedSource(uri, sizes[uri], number, compression_of(uri)) for uri, number in parts.items())
        times = plan.spec.times
        return cls(files, len(plan.parts), sum(sizes.values()), times.first, times.last)

    def blocks(self) -> list[Block]:
        """For people."""
        rows = tuple(
            (
                one.uri,
                size(one.size),
                f"{one.parts} ({one.compression}: can't be divided)" if one.compression else str(one.parts),
            )
            for one in self.files[:_MOST_SHOWN]
        )
        more = len(self.files) - _MOST_SHOWN
        found: list[Block] = [Table(("file", "size", "parts"), rows)]
        if more > 0:
            found.append(f"and {count(more)} more files")
        found.append(f"{count(self.parts)} parts of {count(len(self.files))} files, {size(self.bytes)}.")
        found.append(f"Samples before {moment(self.oldest)} or after {moment(self.newest)} would be bad records.")
        found.append("Samples of one series and time that are there already are replaced. Nothing was written.")
        return found


@dataclass(frozen=True, slots=True)
class Preview:
    """The first samples of an import."""

    samples: tuple[tuple[str, int, float], ...]
    bad_lines: tuple[BadLine, ...]

    def blocks(self) -> list[Block]:
        """For people."""
        rows = tuple((labels, moment(time), repr(value)) for labels, time, value in self.samples)
        found: list[Block] = [Table(("series", "time", "value"), rows)]
        if self.bad_lines:
            found.append(_bad_lines(self.bad_lines))
        return found
