"""The states of a bulk job: permitted transitions, and those that are rejected."""

from dataclasses import replace

import pytest

from strandline.jobs.breaker import BreakerRules
from strandline.jobs.counts import Counts
from strandline.jobs.transitions import (
    ENDED,
    InvalidTransition,
    begin,
    complete,
    complete_stop,
    conclude,
    expire,
    expires_at,
    next_due,
    reopened,
    request_stop,
    resume,
    takes_parts,
    trip_breaker,
)
from strandline.store.bulk_jobs import BulkJob, BulkJobState, BulkPart, Wanted
from strandline.store.jobs import JobState

pytestmark = pytest.mark.unit

NOW = 1_000_000
DAY = 86_400_000
JOB = BulkJob("metrics", "j1", "import", "{}", "hash", parts=2, life=DAY, created_at=0, expires_after=5 * DAY)
PART = BulkPart("metrics", "j1", 0, "{}", DAY)
MUCH_BAD = Counts(records=2_000, bad=500)
RULES = BreakerRules()


def job(state: BulkJobState, **changes: object) -> BulkJob:
    return replace(JOB, state=state, **changes)


def parts(*states: JobState) -> list[BulkPart]:
    return [replace(PART, part=number, state=state) for number, state in enumerate(states)]


class TestBegin:
    def test_a_planned_job_runs_from_its_first_part_on(self) -> None:
        begun = begin(JOB, NOW)
        assert (begun.state, begun.version, begun.changed_at) == (BulkJobState.RUNNING, 1, NOW)
        assert takes_parts(begun)
        assert not takes_parts(JOB)

    def test_a_job_that_is_not_due_waits(self) -> None:
        later = replace(JOB, due_at=NOW + 1)
        assert begin(later, NOW) is later
        assert begin(later, NOW + 1).state is BulkJobState.RUNNING

    def test_a_job_that_has_been_due_for_an_hour_fails_by_name(self) -> None:
        late = replace(JOB, due_at=NOW)
        assert begin(late, NOW + 3_599_999).state is BulkJobState.RUNNING
        failed = begin(late, NOW + 3_600_000)
        assert failed.state is BulkJobState.FAILED
        assert failed.reason == "it was due at 1970-01-01T00:16:40Z, and no worker began it within an hour"
        # An operator may resume it nevertheless, and a job without a due time is never overdue.
        assert resume(failed, NOW + 7_200_000).state is BulkJobState.RUNNING
        assert begin(JOB, NOW + 7_200_000).state is BulkJobState.RUNNING

    def test_the_next_job_that_is_due_is_the_earliest_that_is_planned_for_later(self) -> None:
        some = [replace(JOB, due_at=due) for due in (NOW + 9, NOW + 5, NOW, 0)]
        others = [job(BulkJobState.CANCELLED, due_at=NOW + 1), replace(JOB, due_at=NOW + 2, wanted=Wanted.CANCELLED)]
        assert next_due([*some, *others], NOW) == NOW + 5
        assert next_due([*some, *others], NOW + 9) is None

    def test_a_job_that_was_paused_before_it_was_due_waits_for_its_time_again(self) -> None:
        paused = complete_stop(request_stop(replace(JOB, due_at=NOW + 10), Wanted.PAUSED, NOW), [], NOW)
        assert resume(paused, NOW + 9).state is BulkJobState.PLANNED
        assert resume(paused, NOW + 10).state is BulkJobState.RUNNING

    @pytest.mark.parametrize("state", [state for state in BulkJobState if state is not BulkJobState.PLANNED])
    def test_no_other_job_begins(self, state: BulkJobState) -> None:
        assert begin(job(state), NOW) == job(state)

    def test_a_job_that_is_to_be_paused_does_not_begin(self) -> None:
        wanted = request_stop(JOB, Wanted.PAUSED, NOW)
        assert begin(wanted, NOW) == wanted


class TestPauseAndCancel:
    @pytest.mark.parametrize(
        ("wanted", "state"), [(Wanted.PAUSED, BulkJobState.PAUSED), (Wanted.CANCELLED, BulkJobState.CANCELLED)]
    )
    def test_they_take_effect_once_no_part_is_leased(self, wanted: Wanted, state: BulkJobState) -> None:
        stopping = request_stop(job(BulkJobState.RUNNING), wanted, NOW)
        assert not takes_parts(stopping)
        assert complete_stop(stopping, parts(JobState.LEASED, JobState.DONE), NOW) == stopping
        settled = complete_stop(stopping, parts(JobState.PENDING, JobState.DONE), NOW)
        assert (settled.state, settled.wanted) == (state, Wanted.NOTHING)

    def test_nothing_stops_without_a_request(self) -> None:
        running = job(BulkJobState.RUNNING)
        assert complete_stop(running, [], NOW) == running

    def test_a_second_request_changes_nothing(self) -> None:
        once = request_stop(job(BulkJobState.RUNNING), Wanted.PAUSED, NOW)
        assert request_stop(once, Wanted.PAUSED, NOW + 1) == once

    def test_a_cancellation_is_not_taken_back_by_a_pause(self) -> None:
        once = request_stop(job(BulkJobState.RUNNING), Wanted.CANCELLED, NOW)
        assert request_stop(once, Wanted.PAUSED, NOW + 1) == once
        assert request_stop(request_stop(JOB, Wanted.PAUSED, NOW), Wanted.CANCELLED, NOW).wanted is Wanted.CANCELLED

    @pytest.mark.parametrize("state", [BulkJobState.PAUSED, BulkJobState.BROKEN])
    def test_a_paused_or_broken_job_is_not_paused_again_but_can_be_cancelled(self, state: BulkJobState) -> None:
        assert request_stop(job(state), Wanted.PAUSED, NOW) == job(state)
        assert complete_stop(request_stop(job(state), Wanted.CANCELLED, NOW), [], NOW).state is BulkJobState.CANCELLED

    @pytest.mark.parametrize("state", [*sorted(ENDED), BulkJobState.COMPLETING])
    def test_an_ended_job_is_not_stopped(self, state: BulkJobState) -> None:
        with pytest.raises(InvalidTransition, match=f"is {state}"):
            request_stop(job(state), Wanted.CANCELLED, NOW)


class TestResume:
    @pytest.mark.parametrize("state", [BulkJobState.PAUSED, BulkJobState.BROKEN, BulkJobState.FAILED])
    def test_it_runs_again_and_the_breaker_counts_from_zero(self, state: BulkJobState) -> None:
        resumed = resume(job(state, idle_since=5, reason="why", window=3), NOW)
        assert (resumed.state, resumed.window, resumed.idle_since, resumed.reason) == (BulkJobState.RUNNING, 4, 0, "")

    def test_resuming_twice_is_resuming_once(self) -> None:
        once = resume(job(BulkJobState.PAUSED), NOW)
        assert resume(once, NOW + 1) == once

    def test_it_takes_back_a_pause_that_has_not_taken_effect(self) -> None:
        pausing = request_stop(job(BulkJobState.RUNNING), Wanted.PAUSED, NOW)
        assert takes_parts(resume(pausing, NOW))

    @pytest.mark.parametrize("state", [BulkJobState.DONE, BulkJobState.CANCELLED, BulkJobState.COMPLETING])
    def test_an_ended_job_is_not_resumed(self, state: BulkJobState) -> None:
        with pytest.raises(InvalidTransition, match=f"is {state}"):
            resume(job(state), NOW)

    def test_a_cancellation_is_not_taken_back(self) -> None:
        with pytest.raises(InvalidTransition, match="being cancelled"):
            resume(request_stop(job(BulkJobState.PAUSED), Wanted.CANCELLED, NOW), NOW)

    def test_failed_parts_are_tried_again_and_no_others(self) -> None:
        failed = replace(PART, state=JobState.FAILED, failures=4, worker="w", reason="why")
        assert reopened(failed) == PART
        done = replace(PART, state=JobState.DONE, outcome="{}")
        assert reopened(done) == done


class TestBreaker:
    def test_a_running_job_breaks_with_the_figures(self) -> None:
        broken = trip_breaker(job(BulkJobState.RUNNING), MUCH_BAD, RULES, NOW)
        assert (broken.state, broken.idle_since) == (BulkJobState.BROKEN, NOW)
        assert "500 of 2000" in broken.reason
        assert not takes_parts(broken)

    @pytest.mark.parametrize("state", [state for state in BulkJobState if state is not BulkJobState.RUNNING])
    def test_no_other_job_breaks(self, state: BulkJobState) -> None:
        assert trip_breaker(job(state), MUCH_BAD, RULES, NOW) == job(state)


class TestConclude:
    def test_all_parts_done_lead_to_completion(self) -> None:
        concluded = conclude(job(BulkJobState.RUNNING), parts(JobState.DONE, JobState.DONE), NOW)
        assert concluded.state is BulkJobState.COMPLETING
        done = complete(concluded, "report", NOW)
        assert (done.state, done.report) == (BulkJobState.DONE, "report")

    @pytest.mark.parametrize("open_state", [JobState.PENDING, JobState.LEASED])
    def test_an_open_part_keeps_it_running_also_beside_one_that_failed(self, open_state: JobState) -> None:
        running = job(BulkJobState.RUNNING)
        assert conclude(running, parts(JobState.FAILED, open_state), NOW) == running

    def test_a_failed_part_fails_the_job_when_all_others_were_tried(self) -> None:
        found = parts(JobState.DONE, JobState.FAILED)
        concluded = conclude(job(BulkJobState.RUNNING), [found[0], replace(found[1], reason="no space")], NOW)
        assert concluded.state is BulkJobState.FAILED
        assert concluded.reason == "1 of 2 parts failed; part 1: no space"

    @pytest.mark.parametrize("found", [[], [JobState.DONE], [JobState.DONE] * 3])
    def test_an_incomplete_list_of_parts_decides_nothing(self, found: list[JobState]) -> None:
        running = job(BulkJobState.RUNNING)
        assert conclude(running, parts(*found), NOW) == running

    @pytest.mark.parametrize("state", [state for state in BulkJobState if state is not BulkJobState.RUNNING])
    def test_only_a_running_job_is_concluded(self, state: BulkJobState) -> None:
        assert conclude(job(state), parts(JobState.DONE, JobState.DONE), NOW) == job(state)

    @pytest.mark.parametrize("wanted", [Wanted.PAUSED, Wanted.CANCELLED])
    def test_a_requested_stop_has_precedence(self, wanted: Wanted) -> None:
        stopping, done = job(BulkJobState.RUNNING, wanted=wanted), parts(JobState.DONE, JobState.DONE)
        assert conclude(stopping, done, NOW) == stopping
        assert complete_stop(stopping, done, NOW).state.value == wanted.value

    def test_a_job_is_concluded_once(self) -> None:
        with pytest.raises(InvalidTransition):
            complete(job(BulkJobState.DONE), "another report", NOW)


class TestExpiry:
    @pytest.mark.parametrize("state", [BulkJobState.PAUSED, BulkJobState.BROKEN])
    def test_a_job_that_is_not_resumed_is_cancelled(self, state: BulkJobState) -> None:
        idle = job(state, idle_since=NOW)
        assert expires_at(idle) == NOW + 5 * DAY
        assert expire(idle, NOW + 5 * DAY - 1) == idle
        expired = expire(idle, NOW + 5 * DAY)
        if state is BulkJobState.BROKEN:
            # Its parts are fenced first.
            assert (expired.state, expired.wanted) == (state, Wanted.CANCELLED)
            expired = complete_stop(expired, [], NOW + 5 * DAY)
        assert expired.state is BulkJobState.CANCELLED
        assert "after 5 days" in expired.reason

    def test_a_running_job_does_not_expire(self) -> None:
        running = job(BulkJobState.RUNNING)
        assert expires_at(running) is None
        assert expire(running, 100 * DAY) == running
