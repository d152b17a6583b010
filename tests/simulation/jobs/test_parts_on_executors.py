"""Imports whose parts run on executors, over the real channel to the driver: tasks are lost, run twice and stopped."""

from dataclasses import replace
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.jobs.counts import AttemptCounts
from strandline.jobs.transitions import request_stop, resume
from strandline.store.bulk_jobs import BulkJobState, BulkPart, Wanted
from strandline.store.jobs import JobState
from support.bulk_worlds import Fault, FaultKind
from support.job_worlds import JobWorld
from support.part_executors import MemoryOpener, job_world, worker_with_executors

from .test_imports import NOW, OPTIONS, check_done, text

pytestmark = pytest.mark.simulation


def rows(world: JobWorld) -> list[BulkPart]:
    """The rows of the parts in the store, without the names of the workers."""
    return [replace(part, worker="", renewals=0) for part in world.board.parts(world.board.job("job"))]


def test_executors_produce_the_same_rows_report_and_samples_as_a_single_process(tmp_path: Path) -> None:
    alone, world = JobWorld(tmp_path), job_world(tmp_path)
    alone.planned(text(), OPTIONS)
    assert alone.work()
    world.planned_of(tmp_path / "job.txt", OPTIONS)
    with worker_with_executors(world, MemoryOpener(world)) as worker:
        worker.run_until_done()
    check_done(world)
    assert rows(world) == rows(alone)
    assert world.board.job("job").report == alone.board.job("job").report
    assert world.samples() == alone.samples()


@pytest.mark.parametrize("calls", [1, 3, 6, 9])
def test_a_task_that_is_killed_loses_and_duplicates_nothing(tmp_path: Path, calls: int) -> None:
    """Its part is begun again under another lease, after what has landed; that counts as a failure of the part."""
    world = job_world(tmp_path)
    world.planned(text(), OPTIONS)
    fault = Fault(FaultKind.CRASH_AFTER, calls)
    with worker_with_executors(world, MemoryOpener(world, fault)) as worker:
        worker.run_until_done()
    assert fault.is_over
    check_done(world)
    assert sum(part.failures for part in rows(world)) == 1


def test_a_task_that_spark_runs_again_does_nothing(tmp_path: Path) -> None:
    world = job_world(tmp_path)
    world.planned(text(), OPTIONS)
    with worker_with_executors(world, MemoryOpener(world), runs=3) as worker:
        worker.run_until_done()
    check_done(world)
    assert {part.epoch for part in rows(world)} == {1}


class StoppedByOperator:
    """Lets some chunks land, and holds back all others while an operator stops the job."""

    def __init__(self, world: JobWorld, wanted: Wanted, chunks: int) -> None:
        self._world, self._wanted, self._chunks, self._calls = world, wanted, chunks, 0

    def wait_s(self, samples: int) -> float:  # noqa: ARG002 - of the protocol
        self._calls += 1
        if self._calls == self._chunks:
            board = self._world.board
            board.change(board.job("job"), lambda job: request_stop(job, self._wanted, NOW))
        # Bounded, in case nothing stops the task.
        return 0.01 if self._chunks <= self._calls < self._chunks + 500 else 0.0


@pytest.mark.parametrize("wanted", [Wanted.PAUSED, Wanted.CANCELLED])
def test_the_tasks_of_a_job_that_is_stopped_end_and_nothing_lands_afterwards(tmp_path: Path, wanted: Wanted) -> None:
    world = job_world(tmp_path)
    world.planned(text(), OPTIONS)
    throttle = StoppedByOperator(world, wanted, chunks=3)
    with worker_with_executors(world, MemoryOpener(world), throttle=throttle) as worker:
        worker.run_until_done()
        job = world.board.job("job")
        assert (job.state.value, job.wanted) == (wanted.value, Wanted.NOTHING)
        assert {part.state for part in rows(world)} == {JobState.PENDING}
        landed = world.samples()
        assert {where for where, _, _ in landed} == {("job", 0, 0), ("job", 0, 1)}
    assert world.samples() == landed
    if wanted is Wanted.PAUSED:
        world.board.change(job, lambda job: resume(job, NOW))
        assert world.work()
        check_done(world)


class ClosedAfter:
    """Lets this many chunks land, and then none for a while."""

    def __init__(self, chunks: int) -> None:
        self._chunks, self._calls = chunks, 0

    def wait_s(self, samples: int) -> float:  # noqa: ARG002 - of the protocol
        self._calls += 1
        return 0.01 if self._chunks < self._calls < self._chunks + 500 else 0.0


def test_a_job_breaks_by_the_counts_of_its_running_parts(tmp_path: Path) -> None:
    """These counts are not in the parts' rows before the next renewal of their leases."""
    world = job_world(tmp_path)
    plan = world.planned(text(2_400, 10), replace(OPTIONS, part_bytes=100_000, chunk_bytes=12_000))
    assert len(plan.parts) == 1
    with worker_with_executors(world, MemoryOpener(world), throttle=ClosedAfter(3)) as worker:
        worker.run_until_done()
    job = world.board.job("job")
    assert job.state is BulkJobState.BROKEN
    (part,) = rows(world)
    assert part.state is JobState.PENDING
    # Pausing and breaking keep the counts so far.
    assert 1_000 <= AttemptCounts.from_json(part.counts).fresh.records < 2_400


def test_a_worker_that_was_asked_to_stop_leaves_its_parts_to_others(tmp_path: Path) -> None:
    world = job_world(tmp_path)
    world.planned(text(), OPTIONS)
    chunks: list[int] = []
    opener = MemoryOpener(world, stalls={"begin": lambda: chunks.append(1)})
    with worker_with_executors(world, opener, stop=lambda: len(chunks) >= 2) as worker:
        worker.run_until_done()
    assert {part.state for part in rows(world)} == {JobState.PENDING}
    assert world.board.job("job").state is BulkJobState.RUNNING
    assert world.work()
    check_done(world)


def test_a_lease_that_another_worker_took_ends_the_task_and_its_outcome_does_not_count(tmp_path: Path) -> None:
    world = job_world(tmp_path)
    world.planned(text(), OPTIONS)
    taken: list[BulkPart] = []

    def is_taken() -> None:
        """Other workers consider the driver lost, and do all of its work."""
        if not taken:
            taken.append(world.board.parts(world.board.job("job"))[0])
            world.dead.add("driver")
            assert world.work()

    with worker_with_executors(world, MemoryOpener(world, stalls={"begin": is_taken})) as worker:
        worker.run_until_done()
    check_done(world)
    assert {part.worker for part in world.board.parts(world.board.job("job"))} == {"worker-0"}


@pytest.mark.parametrize("call", ["hold", "committed", "begin", "commit"])
def test_a_task_that_wakes_after_a_cancellation_lands_nothing(tmp_path: Path, call: str) -> None:
    """Its driver was considered dead, and others have cancelled the job. The brokers refuse the task, or, if it has
    fenced the others by then, its driver finds in the store that the part is lost.
    """
    world = job_world(tmp_path)
    world.planned(text(), OPTIONS)
    seen: list[int] = []

    def while_suspended() -> None:
        if not seen and world.samples():
            world.dead.add("driver")
            world.board.change(world.board.job("job"), lambda job: request_stop(job, Wanted.CANCELLED, NOW))
            assert world.work()
            assert world.board.job("job").state is BulkJobState.CANCELLED
            seen.append(sum(world.samples().values()))

    # The driver's machine was suspended together with its clock. So its lease and the grant are valid, as far as it
    # knows.
    opener = MemoryOpener(world, stalls={call: while_suspended})
    with worker_with_executors(world, opener, poll_s=1_000, grant_s=1_000, clock=ManualClock(NOW)) as worker:
        worker.run_until_done()
    assert [sum(world.samples().values())] == seen


class Gate:
    """Holds chunks back some times."""

    def __init__(self) -> None:
        self.waits: list[int] = []

    def wait_s(self, samples: int) -> float:
        self.waits.append(samples)
        return 0.01 if len(self.waits) % 3 else 0.0


def test_chunks_wait_until_the_driver_lets_them_land(tmp_path: Path) -> None:
    world, gate = job_world(tmp_path), Gate()
    world.planned(text(), OPTIONS)
    with worker_with_executors(world, MemoryOpener(world), throttle=gate) as worker:
        worker.run_until_done()
    check_done(world)
    chunks = len({where for where, _ in world.records()})
    assert len(gate.waits) >= 3 * chunks
