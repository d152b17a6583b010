"""A part that Spark runs: one task holds it, and it has ended once no task can use Kafka for it."""

from collections.abc import Callable

import pytest

from strandline.clock import ManualClock
from strandline.errors import Retryable, StrandlineError
from strandline.jobs.counts import AttemptCounts, Counts
from strandline.jobs.outcome import PartOutcome
from strandline.jobs.running import LeasedPart, PartStopped
from strandline.spark.part_channel import DriverReply, PartFailed, TaskRequest, end_request
from strandline.spark.part_slots import PartSlot, TaskNotRun
from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.store.protocol import StoreUnavailable

pytestmark = pytest.mark.unit

JOB = BulkJob("metrics", "job-1", "import", "{}", "hash", parts=1, life=10**9, created_at=1)
PART = BulkPart("metrics", "job-1", 0, "{}", life=10**9, epoch=1)
HELLO = TaskRequest(part=(*PART.primary_key, PART.epoch))
FIRST, SECOND = object(), object()


class Lease:
    """A lease as the worker sees it."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.remaining, self.wait, self.stop = 80.0, 0.0, ""
        self.reported: list[AttemptCounts] = []
        self.confirmed: StrandlineError | None = None

    def slot(self) -> PartSlot:
        leased = LeasedPart(
            JOB, PART, None, lambda: self.remaining, self.reported.append, self.check, self.confirm, lambda _: self.wait
        )
        return PartSlot(leased, self.clock, grant_s=10)

    def check(self) -> None:
        if self.stop:
            raise PartStopped(self.stop)

    def confirm(self) -> None:
        if self.confirmed is not None:
            raise self.confirmed


@pytest.fixture
def lease() -> Lease:
    return Lease()


def test_a_grant_is_never_longer_than_the_lease_is_safe(lease: Lease) -> None:
    slot = lease.slot()
    assert slot.answer(FIRST, HELLO) == DriverReply(seconds=10)
    lease.remaining = 3.0
    assert slot.answer(FIRST, TaskRequest()) == DriverReply(seconds=3)
    lease.remaining = 0.0
    assert slot.answer(FIRST, TaskRequest()) == DriverReply(seconds=0)


def test_what_a_task_has_counted_is_reported_and_its_samples_wait_for_the_rate(lease: Lease) -> None:
    slot = lease.slot()
    slot.answer(FIRST, HELLO)
    counts = AttemptCounts(Counts(5), Counts(5))
    slot.answer(FIRST, TaskRequest(counts=counts.to_json()))
    assert lease.reported == [counts]
    lease.wait = 1.5
    assert slot.answer(FIRST, TaskRequest(samples=100)) == DriverReply(10, wait_s=1.5)
    assert slot.answer(FIRST, TaskRequest()) == DriverReply(10)


def test_a_second_task_waits_while_the_first_one_runs_and_does_nothing_afterwards(lease: Lease) -> None:
    slot = lease.slot()
    slot.answer(FIRST, HELLO)
    answer = slot.answer(SECOND, HELLO)
    assert (answer.seconds, answer.wait_s > 0, answer.stop) == (0, True, "")
    assert slot.ended() is None
    slot.answer(FIRST, end_request(PartOutcome(chunks=2)))
    assert slot.answer(SECOND, HELLO).stop
    end = slot.ended()
    assert end is not None
    assert end.outcome == PartOutcome(chunks=2)


@pytest.mark.parametrize(
    "closes", [lambda slot: slot.connection_lost(FIRST, "closed"), lambda slot: slot.task_ended("crashed")]
)
def test_a_part_whose_task_is_lost_has_ended_once_its_last_grant_is_over(
    lease: Lease, closes: Callable[[PartSlot], None]
) -> None:
    slot = lease.slot()
    slot.answer(FIRST, HELLO)
    lease.clock.sleep(4)
    slot.answer(FIRST, TaskRequest())
    closes(slot)
    # Spark runs it again, possibly on another executor.
    assert slot.answer(SECOND, HELLO).stop
    lease.clock.sleep(10)
    assert slot.ended() is None, "the task may still be using Kafka"
    lease.clock.sleep(1)
    end = slot.ended()
    assert end is not None
    assert isinstance(end.error, PartFailed)


def test_the_end_of_another_tasks_connection_changes_nothing(lease: Lease) -> None:
    slot = lease.slot()
    slot.answer(FIRST, HELLO)
    slot.answer(SECOND, HELLO)
    slot.connection_lost(SECOND, "closed")
    assert slot.answer(FIRST, TaskRequest()) == DriverReply(10)


def test_a_part_that_spark_did_not_run_is_retryable(lease: Lease) -> None:
    slot = lease.slot()
    slot.task_ended("no executors")
    end = slot.ended()
    assert end is not None
    assert isinstance(end.error, TaskNotRun)
    assert isinstance(end.error, Retryable)
    assert slot.answer(FIRST, HELLO).stop


def test_a_task_of_a_job_that_is_to_stop_gets_no_grant_and_its_reply_ends_the_part(lease: Lease) -> None:
    slot = lease.slot()
    slot.answer(FIRST, HELLO)
    lease.stop = "the job is paused"
    assert slot.answer(FIRST, TaskRequest()) == DriverReply(stop="the job is paused")
    assert slot.is_stopping
    assert slot.ended() is None
    slot.answer(FIRST, end_request(PartStopped("the job is paused")))
    end = slot.ended()
    assert end is not None
    assert isinstance(end.error, PartStopped)


def test_a_part_that_was_done_just_before_it_was_to_stop_is_done(lease: Lease) -> None:
    slot = lease.slot()
    slot.answer(FIRST, HELLO)
    lease.stop = "the job is paused"
    slot.answer(FIRST, end_request(PartOutcome(chunks=1)))
    end = slot.ended()
    assert end is not None
    assert end.outcome == PartOutcome(chunks=1)


@pytest.mark.parametrize("cause", [PartStopped("taken by others"), StoreUnavailable("no answer")])
def test_a_part_that_the_store_does_not_confirm_is_given_up_for_that_reason(
    lease: Lease, cause: StrandlineError
) -> None:
    slot = lease.slot()
    slot.answer(FIRST, HELLO)
    assert slot.answer(FIRST, TaskRequest(confirm=True)) == DriverReply(10)
    lease.confirmed = cause
    assert slot.answer(FIRST, TaskRequest()) == DriverReply(10), "no confirmation was requested"
    assert slot.answer(FIRST, TaskRequest(confirm=True)) == DriverReply(stop=cause.message)
    slot.answer(FIRST, end_request(PartStopped(cause.message)))
    end = slot.ended()
    assert end is not None
    assert end.error is cause
