"""An executor's side of the channel: how long it may use Kafka, and what is sent to it."""

import pickle
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from strandline.clock import ManualClock
from strandline.jobs.counts import AttemptCounts
from strandline.jobs.importing.opener import ImportOpener
from strandline.jobs.running import LeasedPart, PartStopped
from strandline.spark.part_listener import PartListener
from strandline.spark.part_slots import PartSlot
from strandline.spark.part_task import DriverLink, PartTask, run_task
from strandline.store.bulk_jobs import BulkJob, BulkPart

pytestmark = pytest.mark.unit

JOB = BulkJob("metrics", "job-1", "import", "{}", "hash", parts=1, life=10**9, created_at=1)
PART = BulkPart("metrics", "job-1", 0, "{}", life=10**9, epoch=1)
OPENER = ImportOpener({"bootstrap.servers": "127.0.0.1:1", "sasl.password": "hidden-word"}, "metrics")
GRANT_S = 10.0


class Driver:
    """A driver that takes some time for each report, on the executor's clock."""

    def __init__(self, listener: PartListener) -> None:
        self.clock, self.takes = ManualClock(), 0.0
        self.reports: list[AttemptCounts] = []
        leased = LeasedPart(JOB, PART, None, lambda: 80.0, self.report, lambda: None, lambda: None, lambda _: 0.0)
        self.slot = PartSlot(leased, self.clock, GRANT_S)
        listener.add(self.slot)
        self.task = PartTask(JOB, PART, None, OPENER, listener.address, listener.key)

    def report(self, counts: AttemptCounts) -> None:
        self.reports.append(counts)
        self.clock.sleep(self.takes)


@pytest.fixture
def driver() -> Iterator[Driver]:
    with PartListener("127.0.0.1") as listener:
        yield Driver(listener)


def test_a_grant_starts_before_its_request(driver: Driver) -> None:
    clock = driver.clock
    with closing(DriverLink(driver.task, clock)) as link:
        link.begin()
        assert link.deadline() == clock.monotonic() + GRANT_S
        requested_at, driver.takes = clock.monotonic(), 0.25
        link.report(AttemptCounts())
        assert clock.monotonic() == requested_at + 0.25
        # The driver expects 10 s from its answer on: on the executor the grant ends before that.
        assert link.deadline() == requested_at + GRANT_S


def test_an_old_grant_is_requested_again_before_it_is_used(driver: Driver) -> None:
    with closing(DriverLink(driver.task, driver.clock)) as link:
        link.begin()
        driver.clock.sleep(60)
        assert link.deadline() == driver.clock.monotonic() + GRANT_S


def test_a_part_is_given_up_once_its_driver_is_gone(driver: Driver) -> None:
    with closing(DriverLink(driver.task, driver.clock)) as link:
        link.begin()
        link.close()
        driver.clock.sleep(1)
        with pytest.raises(PartStopped, match="the driver of part 0 of the bulk job job-1 of metrics is gone"):
            link.deadline()


def test_a_connection_without_the_key_is_not_answered_and_takes_no_part(driver: Driver) -> None:
    with (
        closing(DriverLink(replace(driver.task, key=b"guessed"), driver.clock)) as link,
        pytest.raises(PartStopped, match="is gone"),
    ):
        link.begin()
    assert not driver.slot.is_taken


def test_a_task_under_another_lease_than_the_drivers_does_nothing(driver: Driver) -> None:
    run_task(replace(driver.task, part=replace(PART, epoch=2)))
    assert not driver.slot.is_taken


def test_what_is_sent_to_an_executor_can_be_pickled_and_shows_no_secret() -> None:
    task = PartTask(JOB, PART, 1, OPENER, ("127.0.0.1", 1), b"hidden-key")
    assert pickle.loads(pickle.dumps(task)) == task  # noqa: S301 - our own
    assert "hidden" not in repr(task)
