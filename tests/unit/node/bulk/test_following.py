"""`strandline job status --follow`: rate, time left, the end, and the warning before a job expires."""

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from strandline.clock import ManualClock
from strandline.errors import Retryable
from strandline.jobs.board import BulkBoard, NoSuchJob
from strandline.jobs.counts import AttemptCounts, Counts
from strandline.node.bulk.following import follow
from strandline.node.bulk.progress_rate import ProgressRate
from strandline.node.bulk.reports import JobSummary
from strandline.node.steps import Step
from strandline.store.bulk_jobs import BulkJob, BulkJobState
from strandline.store.jobs import JobState
from support.full_figures import NOW, bulk_job, job_parts
from support.memory_store import MemoryServer, MemoryStore

pytestmark = pytest.mark.unit

HOUR = 3_600_000
DAY = 24 * HOUR


class CallingClock(ManualClock):
    """A clock that calls a function at each sleep."""

    def __init__(self, *on_sleep: Callable[[], None]) -> None:
        super().__init__(NOW)
        self.on_sleep = list(on_sleep)

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        assert self.on_sleep, "there was an unexpected sleep"
        self.on_sleep.pop(0)()


class FollowedJob:
    """A job of seven parts, and the displayed progress."""

    def __init__(self, state: BulkJobState = BulkJobState.RUNNING) -> None:
        self.clock = CallingClock()
        self.board = BulkBoard(MemoryStore(MemoryServer(self.clock)), "metrics", self.clock)
        job = bulk_job("a", state)
        self.board.add(job, job_parts(job, [JobState.PENDING] * 7))
        self.shown: list[tuple[float | None, str]] = []
        self.step = Step("Job a")

    def end(self, part: int, records: int) -> None:
        """Complete a part."""
        self.shown.append((self.step.fraction, self.step.note))
        before = self.board.parts(self.board.job("a"))[part]
        counts = Counts(records=records, bad=1)
        done = replace(before, state=JobState.DONE, counts=AttemptCounts(counts, counts).to_json(), epoch=1)
        assert self.board.replace(before, done)

    def set_state(self, state: BulkJobState) -> None:
        self.board.change(self.board.job("a"), lambda job: replace(job, state=state, version=job.version + 1))


@pytest.mark.parametrize("end", [BulkJobState.DONE, BulkJobState.FAILED, BulkJobState.BROKEN, BulkJobState.PAUSED])
def test_a_job_is_followed_until_no_part_can_be_run_now(end: BulkJobState) -> None:
    followed = FollowedJob()
    followed.clock.on_sleep = [
        *(lambda part=part: followed.end(part, 1000) for part in range(7)),
        lambda: followed.set_state(end),
    ]
    status = follow(followed.board, "a", followed.step, followed.clock, stop=threading.Event())
    assert (status.state, status.parts_done) == (end, 7)
    fractions = [fraction for fraction, _ in followed.shown]
    assert fractions == pytest.approx([part / 7 for part in range(7)])
    assert followed.shown[-1][1] == "6 of 7 parts, 6,000 records (1,000/s), 6 errors, about 1.0 s left"


def test_it_ends_when_it_is_interrupted() -> None:
    followed, stop = FollowedJob(), threading.Event()
    followed.clock.on_sleep = [stop.set]
    assert follow(followed.board, "a", followed.step, followed.clock, stop=stop).state is BulkJobState.RUNNING


def test_a_temporarily_unresponsive_store_is_waited_for_and_a_missing_job_is_not() -> None:
    followed = FollowedJob(BulkJobState.DONE)
    errors = [Retryable("no host answers")]
    find_job = followed.board.job

    def job(name: str) -> BulkJob:
        if errors:
            raise errors[0]
        return find_job(name)

    followed.board.job = job  # type: ignore[method-assign]
    followed.clock.on_sleep = [lambda: None, errors.clear]
    assert follow(followed.board, "a", followed.step, followed.clock, stop=threading.Event()).job == "a"
    assert "no host answers" not in followed.step.note
    with pytest.raises(NoSuchJob):
        follow(followed.board, "b", followed.step, followed.clock, stop=threading.Event())


def test_a_speed_is_that_of_the_last_minute() -> None:
    rate = ProgressRate()
    for second in range(200):
        rate.record(
            second, second / 1000, Counts(records=100 * second if second < 100 else 10_000 + 10 * (second - 100))
        )
    assert rate.records_per_second == pytest.approx(10)
    assert rate.seconds_left == pytest.approx(801)


def test_no_rate_is_shown_before_it_is_known_and_a_lost_attempt_restarts_it() -> None:
    rate = ProgressRate()
    assert rate.note(0, 7) == "0 of 7 parts, 0 records"
    rate.record(0, 0, Counts(records=500))
    assert (rate.records_per_second, rate.seconds_left) == (None, None)
    rate.record(2, 0.1, Counts(records=700))
    assert (rate.records_per_second, rate.seconds_left) == (100, None)
    rate.record(10, 0.05, Counts(records=300))
    assert (rate.records_per_second, rate.seconds_left) == (None, None)


@pytest.mark.parametrize(("time_left", "warned"), [(DAY + 1, False), (DAY, True), (2 * HOUR, True), (-HOUR, True)])
def test_an_expiry_is_announced_a_day_before(time_left: int, *, warned: bool) -> None:
    job = bulk_job("a", BulkJobState.PAUSED, idle_since=NOW + time_left - 5 * DAY, expires_after=5 * DAY)
    warning = JobSummary.of_job(job, ()).expiry_warning(NOW)
    assert bool(warning) == warned
    if time_left == 2 * HOUR:
        assert warning == "Job a is paused and will be cancelled in 2 h 00 min: `strandline job resume a`"
    assert JobSummary.of_job(bulk_job("a"), ()).expiry_warning(NOW) == ""
