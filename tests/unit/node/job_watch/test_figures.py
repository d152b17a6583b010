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


class Polls:
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


def polled(
    job: BulkJob, records: int = 0, bad: int = 0, states: tuple[JobState, ...] = ()
) -> tuple[BulkJob, JobSummary]:
    return job, summary(job, Counts(records=records, bad=bad), states)


def test_counts_before_the_first_read_are_not_included_and_later_jobs_are_counted_completely() -> None:
    polls = Polls(polled(bulk_job("a"), 1000))
    assert polls.records == 0
    polls.after(15, polled(bulk_job("a"), 1200), polled(bulk_job("b"), 50))
    assert polls.records == 250


def test_records_that_a_lost_attempt_had_read_are_counted_once() -> None:
    polls = Polls(polled(bulk_job("a"), 0))
    counted = []
    for records in (500, 100, 300, 500, 700):
        polls.after(15, polled(bulk_job("a"), records))
        counted.append(polls.records)
    assert counted == [500, 500, 500, 500, 700]


def test_counters_do_not_fall_when_a_job_is_deleted() -> None:
    polls = Polls(polled(bulk_job("a")))
    polls.after(15, polled(bulk_job("a"), 700))
    assert polls.after(15).jobs == {}
    assert polls.records == 700
    assert polls.figures.rates()[-1].records == 0


def test_a_worker_that_fails_at_the_same_place_repeatedly_makes_no_progress() -> None:
    polls = Polls(polled(bulk_job("a"), 0))
    polls.after(100, polled(bulk_job("a"), 500))
    assert polls.stalled_s == 0
    for records in (0, 300, 500):
        polls.after(100, polled(bulk_job("a"), records))
    assert polls.stalled_s == 300
    polls.after(100, polled(bulk_job("a"), 501))
    assert polls.stalled_s == 0


def test_ended_parts_and_an_operators_changes_are_progress() -> None:
    job = bulk_job("a")
    polls = Polls(polled(job))
    polls.after(100, polled(job, states=(DONE,)))
    assert polls.stalled_s == 0
    polls.after(100, polled(job, states=(DONE, JobState.FAILED)))
    assert polls.stalled_s == 0
    # A changed lease is no progress.
    polls.after(100, polled(job, states=(DONE, JobState.FAILED, JobState.LEASED)))
    assert polls.stalled_s == 100
    polls.after(100, polled(replace(job, wanted=Wanted.PAUSED), states=(DONE, JobState.FAILED)))
    assert polls.stalled_s == 0


@pytest.mark.parametrize(
    ("job", "stalls"),
    [
        (bulk_job("a"), True),
        (bulk_job("a", BulkJobState.PLANNED), True),
        (bulk_job("a", BulkJobState.PLANNED, due_at=NOW + 10**9), False),
        (bulk_job("a", BulkJobState.COMPLETING), True),
        (bulk_job("a", BulkJobState.PAUSED), False),
        (bulk_job("a", BulkJobState.BROKEN), False),
        # Its cancellation is pending, and no worker completes it.
        (bulk_job("a", BulkJobState.BROKEN, wanted=Wanted.CANCELLED), True),
        (bulk_job("a", BulkJobState.DONE), False),
        (bulk_job("a", BulkJobState.FAILED), False),
    ],
    ids=lambda one: f"{one.state}-{one.wanted}-{one.due_at}" if isinstance(one, BulkJob) else "",
)
def test_only_a_running_job_can_stall(job: BulkJob, *, stalls: bool) -> None:
    polls = Polls(polled(job))
    polls.after(60, polled(job))
    assert polls.stalled_s == (60 if stalls else None)


def test_of_several_jobs_the_one_stalled_for_longest_counts() -> None:
    polls = Polls(polled(bulk_job("a")), polled(bulk_job("b")))
    polls.after(60, polled(bulk_job("a")), polled(bulk_job("b"), 5))
    assert polls.stalled_s == 60
    assert polls.figures.stalled_s("export", NOW, 0) is None


def test_speeds_are_between_polls_of_the_last_hour_at_most_one_in_ten_seconds() -> None:
    polls = Polls(polled(bulk_job("a")))
    for step in range(1, 2000):
        polls.after(2, polled(bulk_job("a"), 2000 * step, bad=20 * step))
    rates = polls.figures.rates()
    assert {(rate.records, rate.errors) for rate in rates} == {(1000.0, 10.0)}
    assert len(rates) == pytest.approx(360, abs=2)
    assert rates[0].time >= NOW + round(polls.seconds * 1000) - HISTORY_MS


def test_a_clock_that_is_set_back_restarts_the_history() -> None:
    polls = Polls(polled(bulk_job("a")))
    polls.after(15, polled(bulk_job("a"), 100))
    figures = updated_figures(polls.figures, [polled(bulk_job("a"), 200)], NOW - HISTORY_MS, 30)
    assert figures.rates() == ()
    assert figures.done["import"].records == 200


def test_progress_counts_ended_parts_and_estimates_running_ones() -> None:
    job = bulk_job("a")
    assert JobSummary.of_job(job, job_parts(job, [JobState.LEASED] * 7, Counts(records=100))).progress == 0
    parts = job_parts(job, [DONE, DONE, JobState.LEASED, *[JobState.PENDING] * 4], Counts(records=100))
    half = job_parts(job, [JobState.LEASED], Counts(records=50))[0].counts
    parts[2:] = [replace(parts[2], counts=half), *(replace(part, counts="") for part in parts[3:])]
    assert JobSummary.of_job(job, parts).progress == pytest.approx(2.5 / 7)
    # A running part never counts as a done one, however many records it has.
    assert JobSummary.of_job(job, job_parts(job, [DONE] * 6 + [JobState.LEASED], Counts(records=9))).progress < 1
    assert JobSummary.of_job(job, job_parts(job, [DONE] * 7)).progress == 1
