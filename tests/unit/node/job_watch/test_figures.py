"""Accumulated figures of jobs: monotonic counters, stalled jobs, and rates over an hour."""

from dataclasses import replace

import pytest

from strandline.jobs.counts import Counts
from strandline.node.bulk.reports import JobSummary
from strandline.node.job_watch.figures import HISTORY_MS, JobsFigures, updated_figures
from strandline.store.bulk_jobs import BulkJob, BulkJobState, Wanted
from strandline.store.jobs import JobState
from support.full_figures import bulk_job, job_parts, summary

pytestmark = pytest.mark.unit

NOW = 1_800_000_000_000
DONE = JobState.DONE


class Looks:
    """Successive reads, a few seconds apart."""

    def __init__(self, *jobs: tuple[BulkJob, JobSummary]) -> None:
        self.seconds = 0.0
        self.figures = JobsFigures()
        self.after(0, *jobs)

    def after(self, seconds: float, *jobs: tuple[BulkJob, JobSummary]) -> JobsFigures:
        self.seconds += seconds
        self.figures = updated_figures(self.figures, jobs, NOW + round(self.seconds * 1000), self.seconds)
        return self.figures

    @property
    def records(self) -> int:
        return self.figures.done["import"].records

    @property
    def stalled_s(self) -> float | None:
        return self.figures.stalled_s("import", NOW + round(self.seconds * 1000), self.seconds)


def seen(job: BulkJob, records: int = 0, bad: int = 0, states: tuple[JobState, ...] = ()) -> tuple[BulkJob, JobSummary]:
    return job, summary(job, Counts(records=records, bad=bad), states)


def test_counts_before_the_first_read_are_not_included_and_later_jobs_are_counted_completely() -> None:
    looks = Looks(seen(bulk_job("a"), 1000))
    assert looks.records == 0
    looks.after(15, seen(bulk_job("a"), 1200), seen(bulk_job("b"), 50))
    assert looks.records == 250


def test_records_that_a_lost_attempt_had_read_are_counted_once() -> None:
    looks = Looks(seen(bulk_job("a"), 0))
    counted = []
    for records in (500, 100, 300, 500, 700):
        looks.after(15, seen(bulk_job("a"), records))
        counted.append(looks.records)
    assert counted == [500, 500, 500, 500, 700]


def test_counters_do_not_fall_when_a_job_is_deleted() -> None:
    looks = Looks(seen(bulk_job("a")))
    looks.after(15, seen(bulk_job("a"), 700))
    assert looks.after(15).jobs == {}
    assert looks.records == 700
    assert looks.figures.rates()[-1].records == 0


def test_a_worker_that_fails_at_the_same_place_repeatedly_makes_no_progress() -> None:
    looks = Looks(seen(bulk_job("a"), 0))
    looks.after(100, seen(bulk_job("a"), 500))
    assert looks.stalled_s == 0
    for records in (0, 300, 500):
        looks.after(100, seen(bulk_job("a"), records))
    assert looks.stalled_s == 300
    looks.after(100, seen(bulk_job("a"), 501))
    assert looks.stalled_s == 0


def test_ended_parts_and_an_operators_changes_are_progress() -> None:
    job = bulk_job("a")
    looks = Looks(seen(job))
    looks.after(100, seen(job, states=(DONE,)))
    assert looks.stalled_s == 0
    looks.after(100, seen(job, states=(DONE, JobState.FAILED)))
    assert looks.stalled_s == 0
    # A lease that comes and goes is none.
    looks.after(100, seen(job, states=(DONE, JobState.FAILED, JobState.LEASED)))
    assert looks.stalled_s == 100
    looks.after(100, seen(replace(job, wanted=Wanted.PAUSED), states=(DONE, JobState.FAILED)))
    assert looks.stalled_s == 0


@pytest.mark.parametrize(
    ("job", "stalls"),
    [
        (bulk_job("a"), True),
        (bulk_job("a", BulkJobState.PLANNED), True),
        (bulk_job("a", BulkJobState.PLANNED, due_at=NOW + 10**9), False),
        (bulk_job("a", BulkJobState.COMPLETING), True),
        (bulk_job("a", BulkJobState.PAUSED), False),
        (bulk_job("a", BulkJobState.BROKEN), False),
        # It is to be cancelled, and no worker does it.
        (bulk_job("a", BulkJobState.BROKEN, wanted=Wanted.CANCELLED), True),
        (bulk_job("a", BulkJobState.DONE), False),
        (bulk_job("a", BulkJobState.FAILED), False),
    ],
    ids=lambda one: f"{one.state}-{one.wanted}-{one.due_at}" if isinstance(one, BulkJob) else "",
)
def test_only_a_running_job_can_stall(job: BulkJob, *, stalls: bool) -> None:
    looks = Looks(seen(job))
    looks.after(60, seen(job))
    assert looks.stalled_s == (60 if stalls else None)


def test_of_several_jobs_the_one_stalled_for_longest_counts() -> None:
    looks = Looks(seen(bulk_job("a")), seen(bulk_job("b")))
    looks.after(60, seen(bulk_job("a")), seen(bulk_job("b"), 5))
    assert looks.stalled_s == 60
    assert looks.figures.stalled_s("export", NOW, 0) is None


def test_speeds_are_between_polls_of_the_last_hour_at_most_one_in_ten_seconds() -> None:
    looks = Looks(seen(bulk_job("a")))
    for step in range(1, 2000):
        looks.after(2, seen(bulk_job("a"), 2000 * step, bad=20 * step))
    rates = looks.figures.rates()
    assert {(one.records, one.errors) for one in rates} == {(1000.0, 10.0)}
    assert len(rates) == pytest.approx(360, abs=2)
    assert rates[0].time >= NOW + round(looks.seconds * 1000) - HISTORY_MS


def test_a_clock_that_is_set_back_restarts_the_history() -> None:
    looks = Looks(seen(bulk_job("a")))
    looks.after(15, seen(bulk_job("a"), 100))
    figures = updated_figures(looks.figures, [seen(bulk_job("a"), 200)], NOW - HISTORY_MS, 30)
    assert figures.rates() == ()
    assert figures.done["import"].records == 200


def test_progress_counts_ended_parts_and_estimates_running_ones() -> None:
    job = bulk_job("a")
    assert JobSummary.of_job(job, job_parts(job, [JobState.LEASED] * 7, Counts(records=100))).progress == 0
    parts = job_parts(job, [DONE, DONE, JobState.LEASED, *[JobState.PENDING] * 4], Counts(records=100))
    half = job_parts(job, [JobState.LEASED], Counts(records=50))[0].counts
    parts[2:] = [replace(parts[2], counts=half), *(replace(part, counts="") for part in parts[3:])]
    assert JobSummary.of_job(job, parts).progress == pytest.approx(2.5 / 7)
    # A part that is not done never counts as one that is, however many records it has.
    assert JobSummary.of_job(job, job_parts(job, [DONE] * 6 + [JobState.LEASED], Counts(records=9))).progress < 1
    assert JobSummary.of_job(job, job_parts(job, [DONE] * 7)).progress == 1
