"""Bulk jobs for the status page: rows of an in-memory store, and a history."""

import math
from collections.abc import Sequence
from dataclasses import replace

from strandline.clock import SystemClock
from strandline.errors import StrandlineError
from strandline.jobs.bad_records import BadRecord, BadRecords
from strandline.jobs.board import BulkBoard
from strandline.jobs.counts import AttemptCounts, Counts
from strandline.jobs.outcome import PartOutcome, SamplesByTime
from strandline.node.bulk.changing import request_job_stop, resume_job
from strandline.node.bulk.reports import JobStatus, JobSummary
from strandline.node.job_watch.figures import JobsFigures, Point, updated_figures
from strandline.recovery.periods import HOUR
from strandline.store.bulk_jobs import BulkJob, BulkJobState, BulkPart, Wanted
from strandline.store.jobs import JobState
from support.memory_store import MemoryServer, MemoryStore

DAY = 24 * HOUR


class FakeJobs:
    """Jobs that a test adds and changes. `failure` is raised instead of reading them."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.board = BulkBoard(MemoryStore(MemoryServer(self.clock)), "metrics", self.clock)
        self.history: tuple[Point, ...] = ()
        self.failure: StrandlineError | None = None

    def add(
        self,
        name: str,
        state: BulkJobState = BulkJobState.RUNNING,
        *,
        done: int = 0,
        of: int = 8,
        counts: Counts | None = None,
        failed: Sequence[str] = (),
        bad: BadRecords | None = None,
        nulls: int = 0,
        kind: str = "import",
        **row: object,
    ) -> None:
        """Add a job. Each done part has these counts and null values, and the first one has these bad records."""
        now = self.clock.now_ms()
        job = BulkJob("metrics", name, kind, "{}", "hash", of, 10 * DAY, now - HOUR, state, **row)  # type: ignore[arg-type]
        times = SamplesByTime(HOUR, {now // HOUR * HOUR: 1})
        outcome = PartOutcome(counts or Counts(), 1, 10, 1, times, bad or BadRecords(), nulls=nulls)
        self.board.add(job, [_part(job, place, done, outcome, failed) for place in range(of)])

    def land(self, name: str, part: int, counts: Counts) -> None:
        """A worker has a part, and has landed these counts of it."""
        before = self.board.parts(self.board.job(name))[part]
        written = AttemptCounts(counts, counts).to_json()
        after = replace(before, state=JobState.LEASED, counts=written, renewals=before.renewals + 1)
        assert self.board.replace(before, after)

    def run_for(self, minutes: int) -> None:
        """A history of a job that has run for this long, with errors in its middle."""
        now, records, errors, points = self.clock.now_ms(), 0, 0, []
        for step in range(minutes * 6):
            records += int(8_000_000 + 1_500_000 * math.sin(step / 7))
            errors += 12_000 if minutes * 2 < step < minutes * 3 else 400
            points.append(Point(now - (minutes * 6 - step) * 10_000, records, errors))
        self.history = tuple(points)

    def figures(self) -> JobsFigures:
        rows = [(job, JobSummary.of_job(job, self.board.parts(job))) for job in self.board.jobs()]
        return replace(updated_figures(JobsFigures(), rows, self.clock.now_ms(), 0.0), points=self.history)

    async def jobs(self) -> JobsFigures:
        if self.failure is not None:
            raise self.failure
        return self.figures()

    async def status(self, job: str) -> JobStatus:
        found = self.board.job(job)
        return JobStatus.of(found, self.board.parts(found))

    async def request_stop(self, job: str, wanted: Wanted) -> JobStatus:
        return request_job_stop(self.board, job, wanted, self.clock)

    async def resume(self, job: str) -> JobStatus:
        return resume_job(self.board, job, self.clock)


def _part(job: BulkJob, place: int, done: int, outcome: PartOutcome, failed: Sequence[str]) -> BulkPart:
    part = BulkPart("metrics", job.job, place, '{"uri":"/data/2026/cpu.csv"}', 10 * DAY)
    if place >= job.parts - len(failed):
        return replace(part, state=JobState.FAILED, epoch=3, failures=3, reason=failed[place - job.parts])
    if place >= done:
        return part
    outcome = outcome if place == 0 else replace(outcome, bad=BadRecords())
    return replace(part, state=JobState.DONE, epoch=1, outcome=outcome.to_json())


def bad_records() -> BadRecords:
    """Bad records with two reasons, and with text that a page must not interpret as markup."""
    examples = (
        BadRecord(1042, 17, "the value is no number", "1763460000,web-1,<b>NaN?</b>"),
        BadRecord(99_321, 2310, "older than the dataset's retention", "1263460000,web-1,0.25"),
    )
    return BadRecords({"the value is no number": 71_204, "older than the dataset's retention": 3}, examples)
