"""Jobs in a store: transitions that succeed, and those that lose to another process."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strandline.clock import ManualClock
from strandline.errors import Fatal
from strandline.recovery.job_board import JobBoard, JobProgress, PlanStopped
from strandline.recovery.leasing import LeasePolicy
from strandline.store.jobs import Job, JobState
from strandline.store.protocol import Store, StoreUnavailable
from strandline.store.sqlite import open_sqlite_store
from support.manifest_rows import NEVER, SHARD

pytestmark = pytest.mark.unit

POLICY = LeasePolicy()
JOBS = [
    Job(SHARD, bucket, "plan", 100 * bucket, 100 * bucket + 100, frozenset({0}), wants_keys=True, life=NEVER)
    for bucket in (1, 2, 3)
]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[Store]:
    opened = open_sqlite_store(tmp_path / "store.sqlite", clock)
    yield opened
    opened.close()


@pytest.fixture
def board(store: Store, clock: ManualClock) -> JobBoard:
    return JobBoard(store, clock, POLICY)


def leased(board: JobBoard, worker: str = "w") -> Job:
    """The first job, leased."""
    board.adopt(SHARD, JOBS, is_start=False)
    job = board.lease(board.jobs(SHARD)[0], worker)
    assert job is not None
    return job


def test_an_adopted_plan_is_in_the_store(board: JobBoard) -> None:
    assert board.adopt(SHARD, JOBS) == JOBS
    assert board.jobs(SHARD) == JOBS
    assert board.adopt(SHARD, JOBS[1:]) == [replace(job, renewals=1) for job in JOBS[1:]]
    assert board.adopt(SHARD, ()) == []


def test_a_start_renews_the_lifetime_of_the_jobs_that_it_keeps_and_an_addition_does_not(board: JobBoard) -> None:
    """A write renews the lifetime, which may be about to end."""
    board.adopt(SHARD, JOBS)
    board.adopt(SHARD, JOBS)
    assert [job.renewals for job in board.jobs(SHARD)] == [1, 1, 1]
    board.adopt(SHARD, JOBS, is_start=False)
    assert [job.renewals for job in board.jobs(SHARD)] == [1, 1, 1]


def test_one_of_two_workers_gets_the_job_and_the_other_none(board: JobBoard) -> None:
    board.adopt(SHARD, JOBS)
    seen = board.jobs(SHARD)[0]
    assert board.lease(seen, "w") is not None
    assert board.lease(seen, "v") is None
    assert board.lease(board.jobs(SHARD)[0], "v") is None
    assert [job.worker for job in board.jobs(SHARD)] == ["w", "", ""]


def test_a_lease_is_renewed_from_the_clock_s_now(board: JobBoard, clock: ManualClock) -> None:
    held = leased(board)
    clock.sleep(20)
    renewed = board.renew(held)
    assert renewed == replace(held, leased_until=clock.now_ms() + 120_000, renewals=1)
    assert board.jobs(SHARD)[0] == renewed


def test_a_worker_may_finish_after_a_renewal_whose_response_was_lost(board: JobBoard, clock: ManualClock) -> None:
    held = leased(board)
    clock.sleep(20)
    board.renew(held)
    assert board.finish(held)
    assert board.jobs(SHARD)[0].state is JobState.DONE


def test_a_late_worker_may_finish_a_job_that_no_other_worker_has_taken(board: JobBoard, clock: ManualClock) -> None:
    held = leased(board)
    clock.sleep(1_000)
    assert board.finish(held)


CHANGES: dict[str, Callable[[JobBoard, Job], object]] = {
    "renew": lambda board, job: board.renew(job),
    "finish": lambda board, job: board.finish(job),
    "fail": lambda board, job: board.fail(job, "bad"),
    "release": lambda board, job: board.release(job),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("then", ["taken back", "leased again", "done by another", "removed", "planned anew"])
def test_a_worker_whose_lease_is_lost_changes_nothing(
    board: JobBoard, clock: ManualClock, change: Callable[[JobBoard, Job], object], then: str
) -> None:
    held = leased(board)
    board.reclaim_lost(SHARD)
    clock.sleep(120)
    if then == "removed":
        board.adopt(SHARD, JOBS[1:])
    elif then == "planned anew":
        board.adopt(SHARD, [replace(JOBS[0], plan="another", groups=frozenset({0, 1}))])
    else:
        board.reclaim_lost(SHARD)
    if then in ("leased again", "done by another"):
        # Even by a worker of the same name: the epoch distinguishes them.
        again = board.lease(board.jobs(SHARD)[0], "w")
        assert again is not None
        assert then == "leased again" or board.finish(again)
    before = board.jobs(SHARD)
    assert not change(board, held)
    assert board.jobs(SHARD) == before


def test_a_lost_lease_is_reclaimed_and_counted(board: JobBoard, clock: ManualClock) -> None:
    leased(board)
    clock.sleep(1_000)
    assert board.reclaim_lost(SHARD)[0].state is JobState.LEASED, "the lease was not watched before"
    clock.sleep(119)
    assert board.reclaim_lost(SHARD)[0].state is JobState.LEASED
    clock.sleep(1)
    job = board.reclaim_lost(SHARD)[0]
    assert (job.state, job.failures, job.epoch) == (JobState.PENDING, 1, 1)


@pytest.mark.parametrize("wrong_by", [-3_600_000, 3_600_000])
def test_46_a_lease_that_is_renewed_is_kept_although_the_clocks_of_two_workers_differ(
    store: Store, clock: ManualClock, board: JobBoard, wrong_by: int
) -> None:
    class WrongClock(ManualClock):
        def now_ms(self) -> int:
            return clock.now_ms() + wrong_by

        def monotonic(self) -> float:
            return clock.monotonic()

    held: Job | None = leased(board)
    other = JobBoard(store, WrongClock(), POLICY)
    for _ in range(20):
        assert [job.worker for job in other.reclaim_lost(SHARD)] == ["w", "", ""]
        clock.sleep(20)
        assert held is not None
        held = board.renew(held)
    taken = other.lease(other.jobs(SHARD)[1], "v")
    for _ in range(20):
        assert taken is not None
        assert [job.worker for job in board.reclaim_lost(SHARD)] == ["w", "v", ""]
        clock.sleep(20)
        taken = other.renew(taken)
        assert held is not None
        held = board.renew(held)


def test_the_lease_of_a_dead_process_is_reclaimed_at_once(store: Store, clock: ManualClock) -> None:
    leased(JobBoard(store, clock, POLICY))
    board = JobBoard(store, clock, POLICY, is_gone=lambda worker: worker == "w")
    assert board.reclaim_lost(SHARD)[0].state is JobState.PENDING


def test_a_start_adopts_jobs_that_have_failed_and_stopped_the_plan(board: JobBoard) -> None:
    board.adopt(SHARD, JOBS)
    for number in range(4):
        held = board.lease(board.jobs(SHARD)[0], "w")
        assert held is not None
        failed = board.fail(held, f"try {number}")
        assert failed is not None
    with pytest.raises(PlanStopped) as raised:
        JobProgress.of(board.jobs(SHARD)).raise_if_stopped()
    assert isinstance(raised.value, Fatal)
    assert raised.value.message == (
        "the replay of metrics/3 stopped at bucket 1, offsets [100, 200), which failed 4 times; the last reason:"
        " offsets"
        " [100, 200): try 3"
    )
    assert board.lease(failed, "w") is None
    assert board.adopt(SHARD, JOBS, is_start=False) == board.jobs(SHARD)
    assert board.jobs(SHARD)[0].state is JobState.FAILED
    adopted = board.adopt(SHARD, JOBS)
    assert adopted is not None
    assert (adopted[0].state, adopted[0].failures, adopted[0].epoch) == (JobState.PENDING, 0, 4)
    JobProgress.of(adopted).raise_if_stopped()


def test_a_job_is_withdrawn_only_as_it_was_seen(board: JobBoard) -> None:
    held = leased(board)
    assert not board.withdraw(JOBS[0])
    assert board.finish(held)
    assert board.withdraw(board.jobs(SHARD)[0])
    assert board.jobs(SHARD) == JOBS[1:]


def test_progress_is_counted_in_jobs_and_offsets(board: JobBoard) -> None:
    assert JobProgress.of([]).is_done
    assert JobProgress.of([]).fraction == 1.0
    held = leased(board)
    board.finish(held)
    progress = JobProgress.of(board.jobs(SHARD))
    assert (progress.jobs, progress.done, progress.records, progress.records_done) == (3, 1, 300, 100)
    assert progress.fraction == pytest.approx(1 / 3)
    assert not progress.is_done
    assert progress.failed == ()


class MissedAnswers:
    """A store that changes a job, but loses its first answer."""

    def __init__(self, store: Store) -> None:
        self._store, self.is_missing = store, True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def replace_job(self, before: Job, after: Job) -> bool:
        is_replaced = self._store.replace_job(before, after)
        if self.is_missing:
            self.is_missing = False
            raise StoreUnavailable("no answer")
        return is_replaced


@pytest.mark.parametrize("change", [CHANGES["renew"], CHANGES["finish"]])
def test_a_change_whose_response_was_lost_is_recognised(
    store: Store, clock: ManualClock, change: Callable[[JobBoard, Job], object]
) -> None:
    held = leased(JobBoard(store, clock, POLICY))
    store_without_answer: Any = MissedAnswers(store)
    board = JobBoard(store_without_answer, clock, POLICY)
    clock.sleep(20)
    with pytest.raises(StoreUnavailable):
        change(board, held)
    assert change(board, held)


class InterferingStore:
    """A store in which another process changes the jobs before each of our changes."""

    def __init__(self, store: Store, times: int) -> None:
        self._store, self.times = store, times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def add_job(self, job: Job) -> bool:
        if self.times > 0:
            self.times -= 1
            other = replace(job, plan=f"other-{self.times}", end=job.end + 1)
            for stored in self._store.jobs(job.shard):
                self._store.remove_job(stored)
            self._store.add_job(other)
        return self._store.add_job(job)

    def replace_job(self, before: Job, after: Job) -> bool:
        if self.times > 0:
            self.times -= 1
            self._store.replace_job(before, replace(after, plan=f"other-{self.times}", end=after.end + 1))
        return self._store.replace_job(before, after)


def test_two_coordinators_at_once_agree_in_the_end(store: Store, clock: ManualClock) -> None:
    interfering_store: Any = InterferingStore(store, 5)
    assert JobBoard(interfering_store, clock, POLICY).adopt(SHARD, JOBS[:1]) == JOBS[:1]


def test_adoption_gives_up_if_the_plan_keeps_being_changed(store: Store, clock: ManualClock) -> None:
    interfering_store: Any = InterferingStore(store, 1_000)
    assert JobBoard(interfering_store, clock, POLICY).adopt(SHARD, JOBS[:1]) is None
