"""Parts of bulk jobs are leased like replay jobs: transitions that succeed, and those that lose to another worker."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from strandline.clock import ManualClock
from strandline.jobs.board import BulkBoard
from strandline.jobs.counts import AttemptCounts, Counts
from strandline.jobs.job_lifecycle import start_attempt, stored_counts
from strandline.recovery.lease_keeper import LeaseKeeper
from strandline.recovery.leasing import LeaseLost, LeasePolicy, fail, finish, lease, reclaim, release, renew
from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.store.jobs import JobState
from strandline.store.protocol import Store, StoreUnavailable
from support.memory_store import MemoryServer, MemoryStore

pytestmark = pytest.mark.unit

POLICY = LeasePolicy()
NOW = 1_700_000_000_000
PARTS = [BulkPart("metrics", "job-1", number, "{}", life=10**9) for number in range(3)]
JOB = BulkJob("metrics", "job-1", "import", "{}", "hash", parts=3, life=10**9, created_at=NOW)
PENDING = replace(PARTS[1], epoch=4)
LEASED = lease(PENDING, "w", NOW, POLICY)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def store(clock: ManualClock) -> Store:
    store = MemoryStore(MemoryServer(clock))
    store.add_bulk_parts(PARTS)
    return store


@pytest.fixture
def board(store: Store, clock: ManualClock) -> BulkBoard:
    return BulkBoard(store, "metrics", clock, POLICY)


def all_parts(board: BulkBoard) -> list[BulkPart]:
    return list(board.parts(JOB))


def leased(board: BulkBoard, number: int = 0, worker: str = "w") -> BulkPart:
    part = board.lease(all_parts(board)[number], worker)
    assert part is not None
    return part


def counting(counts: str) -> Callable[[BulkPart], BulkPart]:
    return lambda part: replace(part, counts=counts, window=2)


def test_a_part_goes_through_the_states_of_a_job() -> None:
    assert replace(PENDING, state=JobState.LEASED, epoch=5, worker="w", leased_until=NOW + 120_000) == LEASED
    assert renew(LEASED, LEASED, NOW + 1, POLICY) == replace(LEASED, leased_until=NOW + 120_001, renewals=1)
    assert finish(LEASED, LEASED) == replace(LEASED, state=JobState.DONE, leased_until=0)
    assert release(LEASED, LEASED, "no broker") == replace(PENDING, epoch=5, reason="no broker")
    assert fail(LEASED, LEASED, "full disk", POLICY) == replace(PENDING, epoch=5, reason="full disk", failures=1)
    assert reclaim(LEASED, POLICY) == replace(PENDING, epoch=5, reason="its worker was lost: w", failures=1)
    assert reclaim(replace(LEASED, failures=3), POLICY).state is JobState.FAILED


@pytest.mark.parametrize(
    "stored",
    [replace(LEASED, epoch=6), replace(LEASED, worker="v"), replace(LEASED, job="job-2"), replace(PENDING, epoch=5)],
    ids=["a later lease", "another worker", "another job", "taken back"],
)
def test_a_worker_with_an_old_lease_of_a_part_is_refused(stored: BulkPart) -> None:
    with pytest.raises(LeaseLost, match="part 1 of the bulk job job-1 of metrics is no longer leased to w under epoch"):
        finish(stored, LEASED)


def test_only_one_of_two_workers_gets_the_part(board: BulkBoard) -> None:
    seen = all_parts(board)[0]
    assert board.lease(seen, "w") is not None
    assert board.lease(seen, "v") is None
    assert board.lease(all_parts(board)[0], "v") is None
    assert [part.worker for part in all_parts(board)] == ["w", "", ""]


def test_a_change_of_a_lease_stores_what_was_counted(board: BulkBoard) -> None:
    held = board.lease(all_parts(board)[0], "w", counting("leased"))
    assert held is not None
    held = board.renew(held, counting("renewed"))
    assert held is not None
    assert all_parts(board)[0] == held
    assert (held.counts, held.window, held.renewals) == ("renewed", 2, 1)
    assert board.fail(held, "bad", counting("failed")) == all_parts(board)[0]
    again = leased(board)
    assert again.counts == "failed"
    assert board.release(again, "", counting("released"))
    assert all_parts(board)[0].counts == "released"
    assert board.finish(leased(board), lambda part: replace(part, outcome="all of it"))
    assert (all_parts(board)[0].state, all_parts(board)[0].outcome) == (JobState.DONE, "all of it")


def test_a_part_that_was_taken_back_is_not_finished_by_its_former_worker(board: BulkBoard, clock: ManualClock) -> None:
    held = leased(board)
    board.reclaim_lost(JOB)
    clock.sleep(120)
    assert board.reclaim_lost(JOB)[0].state is JobState.PENDING
    before = all_parts(board)
    assert not board.finish(held, lambda part: replace(part, outcome="late"))
    assert board.renew(held, counting("late")) is None
    assert all_parts(board) == before


def test_a_part_whose_lease_is_renewed_is_not_taken_back(board: BulkBoard, store: Store, clock: ManualClock) -> None:
    held: BulkPart | None = leased(board)
    other = BulkBoard(store, "metrics", clock, POLICY)
    for _ in range(20):
        assert other.reclaim_lost(JOB)[0].worker == "w"
        clock.sleep(20)
        assert held is not None
        held = board.renew(held)


def test_the_part_of_a_dead_process_is_taken_back_at_once(store: Store, clock: ManualClock) -> None:
    leased(BulkBoard(store, "metrics", clock, POLICY))
    board = BulkBoard(store, "metrics", clock, POLICY, is_gone=lambda worker: worker == "w")
    assert board.reclaim_lost(JOB)[0].state is JobState.PENDING


class MissedAnswers:
    """A store that changes a part, but loses its first answer."""

    def __init__(self, store: Store) -> None:
        self._store, self.is_missing = store, True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def replace_bulk_part(self, before: BulkPart, after: BulkPart) -> bool:
        is_replaced = self._store.replace_bulk_part(before, after)
        if self.is_missing:
            self.is_missing = False
            raise StoreUnavailable("no answer")
        return is_replaced


def test_a_part_that_was_finished_without_an_answer_is_finished_once(
    board: BulkBoard, store: Store, clock: ManualClock
) -> None:
    held = leased(board)
    store_without_answer: Any = MissedAnswers(store)
    other = BulkBoard(store_without_answer, "metrics", clock, POLICY)
    with pytest.raises(StoreUnavailable):
        other.finish(held, lambda part: replace(part, outcome="first"))
    assert other.finish(held, lambda part: replace(part, outcome="second"))
    assert all_parts(board)[0].outcome == "first"


def test_a_keeper_stores_the_counts_of_each_part_with_its_renewal(board: BulkBoard, clock: ManualClock) -> None:
    parts = [leased(board, 0), leased(board, 1)]
    counts = {0: "a", 1: "b"}
    keeper = LeaseKeeper(board, parts, amend=lambda part: replace(part, counts=counts[part.part]))
    clock.sleep(20)
    keeper.renew_if_due()
    assert [part.counts for part in all_parts(board)] == ["a", "b", ""]
    assert keeper.held(parts) == all_parts(board)[:2]
    assert keeper.finish(parts[0], lambda part: replace(part, outcome="done"))
    assert keeper.fail(parts[1], "bad", counting("c"))
    assert [(part.state, part.counts, part.outcome) for part in all_parts(board)[:2]] == [
        (JobState.DONE, "a", "done"),
        (JobState.PENDING, "c", ""),
    ]
    assert keeper.held(parts) == []


def test_a_part_is_safe_for_two_thirds_of_a_term_after_its_last_renewal_began(
    board: BulkBoard, store: Store, clock: ManualClock
) -> None:
    began = clock.monotonic()
    part = leased(board)
    clock.sleep(5)
    keeper = LeaseKeeper(board, [part], leased_at=began)
    assert keeper.remaining_s(part) == 75
    clock.sleep(20)
    keeper.renew_if_due()
    assert keeper.remaining_s(part) == 80
    clock.sleep(80)
    assert keeper.remaining_s(part) == 0
    other = BulkBoard(store, "metrics", clock, POLICY, is_gone=lambda _: True)
    other.reclaim_lost(JOB)
    keeper.renew_if_due()
    assert keeper.remaining_s(part) == 0
    assert keeper.held([part]) == []


def test_a_renewal_that_takes_long_does_not_make_a_part_safe_for_longer(
    board: BulkBoard, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = leased(board)
    keeper = LeaseKeeper(board, [part])
    assert keeper.remaining_s(part) == 0, "the time of its lease is unknown"
    replaced = board.store.replace_bulk_part

    def slowly(before: BulkPart, after: BulkPart) -> bool:
        clock.sleep(30)
        return replaced(before, after)

    monkeypatch.setattr(board.store, "replace_bulk_part", slowly)
    clock.sleep(20)
    keeper.renew_if_due()
    assert keeper.remaining_s(part) == 50


@pytest.mark.parametrize(("window", "refused"), [(1, 2), (2, 0)])
def test_what_has_landed_of_a_part_stays_counted_when_it_is_leased_again(window: int, refused: int) -> None:
    """The worker may find that the job was cancelled, and then lands nothing that would be counted again."""
    before = AttemptCounts(Counts(records=5, samples=3), Counts(records=5, samples=3, refused=2), fenced=4)
    counts = stored_counts(start_attempt(replace(PENDING, counts=before.to_json(), window=1), window))
    assert counts == AttemptCounts(Counts(records=5, samples=3), Counts(refused=refused))
