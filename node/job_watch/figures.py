"""What looks at a dataset's jobs have shown, one after the other. Pure.

Rows of jobs are deleted, and a new attempt at a part counts from 0. So what is counted here only rises: a job adds what
its counts exceed the highest that were seen of it by.
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
class SeenJob:
    """A job as the last look found it. `highest` are the highest counts that were seen of it, `progressed_at` is when,
    on the monotonic clock, it last made progress.
    """

    row: BulkJob
    summary: JobSummary
    highest: Counts
    progressed_at: float

    @property
    def is_settled(self) -> bool:
        """Whether nothing about it changes unless an operator resumes or deletes it."""
        return self.row.state in ENDED


@dataclass(frozen=True, slots=True)
class Point:
    """How much all jobs together had done at a time, in milliseconds: records, and errors among them."""

    time: int
    records: int
    errors: int


@dataclass(frozen=True, slots=True)
class Rates:
    """Records and errors a second, up to a time in milliseconds."""

    time: int
    records: float
    errors: float


@dataclass(frozen=True, slots=True)
class JobsFigures:
    """All that is known of a dataset's jobs. `looked_at` is None before the first look that succeeded, and `began_at`
    when the first one was tried; `failures` counts looks that failed. `done` is what jobs of each kind have done since
    the first look.
    """

    looked_at: int | None = None
    began_at: int | None = None
    failures: int = 0
    jobs: Mapping[str, SeenJob] = field(default_factory=dict)
    done: Mapping[str, Counts] = field(default_factory=dict)
    points: tuple[Point, ...] = ()

    def rates(self) -> tuple[Rates, ...]:
        """How fast jobs went in the last hour, between one point and the next."""
        return tuple(
            Rates(
                after.time,
                (after.records - before.records) * 1000 / (after.time - before.time),
                (after.errors - before.errors) * 1000 / (after.time - before.time),
            )
            for before, after in zip(self.points, self.points[1:], strict=False)
        )

    def stalled_s(self, kind: str, now: int, monotonic: float) -> float | None:
        """For how long a job of a kind that workers are to work on has made no progress: the longest of these times, or
        None if there is no such job.
        """
        going = (job for job in self.jobs.values() if job.row.kind == kind and has_work(job.row, now))
        return max((monotonic - job.progressed_at for job in going), default=None)


def observed(
    before: JobsFigures, rows: Sequence[tuple[BulkJob, JobSummary]], now: int, monotonic: float
) -> JobsFigures:
    """The figures after a look, by those before it."""
    jobs: dict[str, SeenJob] = {}
    done = dict(before.done)
    for row, summary in rows:
        known = before.jobs.get(row.job)
        highest = _highest(known.highest, summary.counts) if known is not None else summary.counts
        jobs[row.job] = SeenJob(row, summary, highest, _progressed_at(known, row, summary, highest, monotonic))
        # What a job had done before the first look is not counted: counters begin at 0.
        counted = known.highest if known is not None else Counts() if before.looked_at is not None else highest
        done[row.kind] = done.get(row.kind, Counts()) + (highest - counted)
    return replace(before, looked_at=now, jobs=jobs, done=done, points=_points(before.points, done, now))


def _highest(one: Counts, other: Counts) -> Counts:
    return Counts(*(max(pair) for pair in zip(astuple(one), astuple(other), strict=True)))


def _progressed_at(
    known: SeenJob | None, row: BulkJob, summary: JobSummary, highest: Counts, monotonic: float
) -> float:
    # A worker that fails again and again at the same place raises the counts up to it each time: that is no progress.
    if known is None:
        return monotonic
    was = (known.row.state, known.row.wanted, known.summary.parts_done, known.summary.parts_failed, known.highest)
    same = was == (row.state, row.wanted, summary.parts_done, summary.parts_failed, highest)
    return known.progressed_at if same else monotonic


def _points(before: tuple[Point, ...], done: Mapping[str, Counts], now: int) -> tuple[Point, ...]:
    total = Counts.total(done.values())
    # A wall clock may be set back.
    kept = tuple(point for point in before if now - HISTORY_MS <= point.time <= now)
    if kept and now - kept[-1].time < _POINT_MS:
        return kept
    return (*kept, Point(now, total.records + total.refused, errors_of(total)))
