"""Figures of a dataset's jobs, accumulated over successive reads of the store. Pure.

Rows of jobs are deleted, and a new attempt at a part counts from 0. To make the totals monotonic, a job only adds the
amount by which its counts exceed their previous maximum.
"""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace

from strandline.jobs.breaker import errors_of
from strandline.jobs.counts import Counts
from strandline.jobs.transitions import ENDED, has_work
from strandline.node.bulk.reports import JobSummary
from strandline.store.bulk_jobs import BulkJob

HISTORY_MS = 3_600_000
_POINT_MS = 10_000


@dataclass(frozen=True, slots=True)
class ObservedJob:
    """A job as last read. `highest` is the maximum of each of its counts, `progressed_at` the time of its last progress
    on the monotonic clock.
    """

    row: BulkJob
    summary: JobSummary
    highest: Counts
    progressed_at: float

    @property
    def is_settled(self) -> bool:
        """Whether it only changes if an operator resumes or deletes it."""
        return self.row.state in ENDED


@dataclass(frozen=True, slots=True)
class Point:
    """The totals of all jobs at a time, in milliseconds: records, and errors among them."""

    time: int
    records: int
    errors: int


@dataclass(frozen=True, slots=True)
class Rates:
    """Records and errors per second in the interval that ends at `time`, in milliseconds."""

    time: int
    records: float
    errors: float


@dataclass(frozen=True, slots=True)
class JobsFigures:
    """The figures of a dataset's jobs. `looked_at` is the time of the last successful read, None before the first;
    `began_at` is the time of the first attempt. `failures` counts failed reads. `done` are the totals of each kind of
    job since the first read.
    """

    looked_at: int | None = None
    began_at: int | None = None
    failures: int = 0
    jobs: Mapping[str, ObservedJob] = field(default_factory=dict)
    done: Mapping[str, Counts] = field(default_factory=dict)
    points: tuple[Point, ...] = ()

    def rates(self) -> tuple[Rates, ...]:
        """The rates between successive points of the last hour."""
        return tuple(
            Rates(
                after.time,
                (after.records - before.records) * 1000 / (after.time - before.time),
                (after.errors - before.errors) * 1000 / (after.time - before.time),
            )
            for before, after in zip(self.points, self.points[1:], strict=False)
        )

    def stalled_s(self, kind: str, now: int, monotonic: float) -> float | None:
        """How long a job of a kind that workers should run has made no progress: the maximum over such jobs, or None if
        there is none.
        """
        going = (job for job in self.jobs.values() if job.row.kind == kind and has_work(job.row, now))
        return max((monotonic - job.progressed_at for job in going), default=None)


def updated_figures(
    before: JobsFigures, rows: Sequence[tuple[BulkJob, JobSummary]], now: int, monotonic: float
) -> JobsFigures:
    """The figures after another read of the store."""
    jobs: dict[str, ObservedJob] = {}
    done = dict(before.done)
    for row, summary in rows:
        known = before.jobs.get(row.job)
        highest = _highest(known.highest, summary.counts) if known is not None else summary.counts
        jobs[row.job] = ObservedJob(row, summary, highest, _progressed_at(known, row, summary, highest, monotonic))
        # Counts before the first read are not included: counters start at 0.
        counted = known.highest if known is not None else Counts() if before.looked_at is not None else highest
        done[row.kind] = done.get(row.kind, Counts()) + (highest - counted)
    return replace(before, looked_at=now, jobs=jobs, done=done, points=_points(before.points, done, now))


def _highest(one: Counts, other: Counts) -> Counts:
    return Counts(*(max(pair) for pair in zip(astuple(one), astuple(other), strict=True)))


def _progressed_at(
    known: ObservedJob | None, row: BulkJob, summary: JobSummary, highest: Counts, monotonic: float
) -> float:
    # Counts that stay below their maximum are no progress: a worker that keeps failing at the same record repeats them.
    if known is None:
        return monotonic
    was = (known.row.state, known.row.wanted, known.summary.parts_done, known.summary.parts_failed, known.highest)
    same = was == (row.state, row.wanted, summary.parts_done, summary.parts_failed, highest)
    return known.progressed_at if same else monotonic


def _points(before: tuple[Point, ...], done: Mapping[str, Counts], now: int) -> tuple[Point, ...]:
    total = Counts.total(done.values())
    # Points in the future are dropped, too: the wall clock may have been set back.
    kept = tuple(point for point in before if now - HISTORY_MS <= point.time <= now)
    if kept and now - kept[-1].time < _POINT_MS:
        return kept
    return (*kept, Point(now, total.records + total.refused, errors_of(total)))
