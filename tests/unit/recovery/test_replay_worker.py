"""A worker: what it takes, and what it says of what it did."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strandline.clock import ManualClock
from strandline.errors import Fatal
from strandline.recovery.cutting import Cutting
from strandline.recovery.job_board import JobBoard
from strandline.recovery.lease_keeper import LeaseKeeper
from strandline.recovery.leasing import LeaseLost
from strandline.recovery.replay.job_result import JobResult, attempt_of
from strandline.recovery.replay.runner import JobRunner, ReplayFailed, SessionLost
from strandline.recovery.replay_worker import STALL_S, ReplayWorker, WaveProgress, WorkerOptions
from strandline.recovery.urgency import Urgency
from strandline.store.jobs import Job, JobState
from strandline.store.protocol import Store, StoreUnavailable
from strandline.store.rows import ShardId
from strandline.store.sqlite import open_sqlite_store
from support.manifest_rows import NEVER

pytestmark = pytest.mark.unit

SHARDS = [ShardId("m", 0), ShardId("m", 1)]
URGENCY = Urgency(Cutting(3_600_000, 30_000), None)
Heard = Callable[[float], None]


def job(shard: int, bucket: int) -> Job:
    groups = frozenset({0})
    return Job(SHARDS[shard], bucket, "p", 10 * bucket, 10 * bucket + 10, groups, wants_keys=True, expires=NEVER)


class Bench:
    """A store with jobs, and workers on it."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.store: Store = open_sqlite_store(folder / "store.sqlite", self.clock)
        self.board = JobBoard(self.store, self.clock)
        self.told: list[WaveProgress] = []

    def plan(self, *jobs: Job) -> None:
        for one in jobs:
            assert self.store.add_job(one)

    def worker(self, runner: JobRunner, name: str = "w", **options: Any) -> ReplayWorker:
        return ReplayWorker(
            options.pop("store", self.store),
            SHARDS,
            runner,
            self.clock,
            name,
            urgency=URGENCY,
            options=WorkerOptions(**options),
            on_progress=self.told.append,
        )

    def told_of(self) -> list[tuple[list[int], float]]:
        return [([one.bucket for one in told.jobs], told.fraction) for told in self.told]

    def states(self, shard: int = 0) -> dict[int, JobState]:
        return {one.bucket: one.state for one in self.store.jobs(SHARDS[shard])}

    def job(self, bucket: int) -> Job:
        return next(one for one in self.store.jobs(SHARDS[0]) if one.bucket == bucket)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.store.close()


class Runs:
    """A runner that notes what it was asked for, and does something meanwhile."""

    def __init__(self, meanwhile: Callable[[Sequence[Job], Heard], None] = lambda _jobs, _heard: None) -> None:
        self.runs: list[list[tuple[int, int]]] = []
        self._meanwhile = meanwhile

    def run(self, jobs: Sequence[Job], heard: Heard) -> Mapping[Job, JobResult]:
        self.runs.append([(one.shard.shard, one.bucket) for one in jobs])
        self._meanwhile(jobs, heard)
        return {}


class BadRecord(Fatal):
    """What no second try makes good."""


def fails_with(error: Exception, *buckets: int) -> Runs:
    def meanwhile(jobs: Sequence[Job], _heard: Heard) -> None:
        if any(one.bucket in buckets for one in jobs):
            raise error

    return Runs(meanwhile)


def test_a_worker_reads_all_jobs_the_most_urgent_first_and_then_leaves(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2), job(0, 3), job(1, 1))
    runs = Runs()
    bench.worker(runs, wave_records=20).run_until_done()
    assert runs.runs == [[(0, 1), (1, 1)], [(0, 2), (0, 3)]]
    assert {*bench.states(0).values(), *bench.states(1).values()} == {JobState.DONE}


def test_a_runner_is_given_leased_jobs_under_their_new_epochs(bench: Bench) -> None:
    bench.plan(job(0, 1), replace(job(0, 2), epoch=4))
    given: list[Job] = []
    bench.worker(Runs(lambda jobs, _: given.extend(jobs))).step()
    assert [(one.state, one.worker, one.epoch) for one in given] == [
        (JobState.LEASED, "w", 1),
        (JobState.LEASED, "w", 5),
    ]


def test_a_worker_without_work_does_nothing(bench: Bench) -> None:
    runs = Runs()
    assert not bench.worker(runs).step()
    bench.worker(runs).run_until_done()
    assert runs.runs == []


def test_progress_is_told_with_the_jobs_that_it_is_of(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))
    bench.worker(Runs(lambda _, heard: heard(0.5))).step()
    assert bench.told_of() == [([1, 2], 0.5), ([1, 2], 1.0)]


def test_only_jobs_that_are_marked_as_done_are_told_to_be(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))

    def meanwhile(_jobs: Sequence[Job], heard: Heard) -> None:
        heard(1.0)
        assert bench.store.remove_job(bench.job(1))

    bench.worker(Runs(meanwhile)).step()
    assert bench.told_of() == [([2], 1.0)]


def test_jobs_that_failed_are_not_told_to_be_done(bench: Bench) -> None:
    bench.plan(job(0, 1))
    bench.worker(fails_with(BadRecord("no"), 1)).step()
    assert bench.told == []


def test_if_a_wave_fails_its_jobs_are_read_one_by_one_and_only_the_bad_one_has_failed(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2), job(0, 3))
    runs = fails_with(BadRecord("offset 25"), 2)
    worker = bench.worker(runs)
    worker.step()
    assert set(bench.states().values()) == {JobState.PENDING}
    assert bench.job(2).reason == "offsets [20, 30): read with others: BadRecord: offset 25"
    worker.step()
    worker.step()
    assert (bench.job(2).failures, bench.job(2).reason) == (1, "offsets [20, 30): BadRecord: offset 25")
    bench.clock.sleep(1)
    bench.store.replace_job(bench.job(2), replace(bench.job(2), state=JobState.DONE))
    worker.step()
    assert runs.runs == [[(0, 1), (0, 2), (0, 3)], [(0, 1)], [(0, 2)], [(0, 3)]]
    assert set(bench.states().values()) == {JobState.DONE}
    assert [one.failures for one in bench.store.jobs(SHARDS[0])] == [0, 1, 0]


def test_no_attempt_is_run_twice(bench: Bench) -> None:
    """Jobs are divided in one way in a wave and in another way alone: what both leave must not be found together."""
    bench.plan(job(0, 1), job(0, 2), job(1, 1))
    attempts: list[tuple[ShardId, int, str]] = []
    divided: dict[tuple[ShardId, int, str], int] = {}

    def meanwhile(jobs: Sequence[Job], _heard: Heard) -> None:
        for one in jobs:
            attempts.append((one.shard, one.bucket, attempt_of(one)))
            divided[attempts[-1]] = len(jobs)
        if len(jobs) > 1 or jobs[0].failures < 2:
            raise ReplayFailed("a task was lost")

    bench.worker(Runs(meanwhile)).run_until_done()
    assert len(set(attempts)) == len(attempts) == 3 * (1 + 3)
    done = [one for shard in SHARDS for one in bench.store.jobs(shard)]
    assert [(one.state, one.failures) for one in done] == [(JobState.DONE, 2)] * 3
    assert {divided[one.shard, one.bucket, attempt_of(one)] for one in done} == {1}


def test_a_suspect_of_another_worker_is_read_alone_too(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))
    bench.worker(fails_with(BadRecord("no"), 1, 2)).step()
    runs = Runs()
    bench.worker(runs, "v").run_until_done()
    assert runs.runs == [[(0, 1)], [(0, 2)]]


def test_a_suspect_that_somebody_else_has_had_meanwhile_is_still_one(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))
    errors: list[Exception] = [BadRecord("no")]

    def meanwhile(_jobs: Sequence[Job], _heard: Heard) -> None:
        if errors:
            raise errors.pop()

    runs = Runs(meanwhile)
    worker = bench.worker(runs)
    worker.step()
    for bucket in (1, 2):
        held = bench.board.lease(bench.job(bucket), "v")
        assert held is not None
        assert bench.board.release(held, "the store is away")
    worker.run_until_done()
    assert runs.runs == [[(0, 1), (0, 2)], [(0, 1)], [(0, 2)]]


def test_a_suspect_stays_one_until_it_was_read(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))
    errors: list[Exception] = [StoreUnavailable("the store is away"), BadRecord("no")]

    def meanwhile(_jobs: Sequence[Job], _heard: Heard) -> None:
        if errors:
            raise errors.pop()

    runs = Runs(meanwhile)
    bench.worker(runs).run_until_done()
    assert runs.runs == [[(0, 1), (0, 2)], [(0, 1)], [(0, 1)], [(0, 2)]]
    assert [one.failures for one in bench.store.jobs(SHARDS[0])] == [0, 0]


def test_a_wave_whose_leases_were_all_lost_leaves_no_suspects(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))
    is_lost = [True]

    def meanwhile(_jobs: Sequence[Job], _heard: Heard) -> None:
        if is_lost:
            is_lost.clear()
            raise LeaseLost("taken")

    runs = Runs(meanwhile)
    bench.worker(runs).run_until_done()
    assert runs.runs == [[(0, 1), (0, 2)]] * 2


def test_a_runner_that_has_lost_its_session_ends_the_worker_and_only_a_job_alone_has_failed(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))
    lost = fails_with(SessionLost("the JVM is gone"), 1, 2)
    with pytest.raises(SessionLost):
        bench.worker(lost).run_until_done()
    assert [(one.state, one.failures) for one in bench.store.jobs(SHARDS[0])] == [(JobState.PENDING, 0)] * 2
    # The next process reads them one by one, so that a job that ends the session each time is found out.
    with pytest.raises(SessionLost):
        bench.worker(lost, "v").run_until_done()
    assert lost.runs == [[(0, 1), (0, 2)], [(0, 1)]]
    assert [(one.state, one.failures) for one in bench.store.jobs(SHARDS[0])] == [
        (JobState.PENDING, 1),
        (JobState.PENDING, 0),
    ]


def test_a_lost_session_ends_the_worker_also_if_the_store_is_away(bench: Bench) -> None:
    bench.plan(job(0, 1))

    class Away:
        def __getattr__(self, name: str) -> Any:
            return getattr(bench.store, name)

        def replace_job(self, before: Job, after: Job) -> bool:
            if before.state is JobState.LEASED:
                raise StoreUnavailable("the store is away")
            return bench.store.replace_job(before, after)

    with pytest.raises(SessionLost):
        bench.worker(fails_with(SessionLost("the JVM is gone"), 1), store=Away()).run_until_done()


def test_a_shard_that_cannot_be_read_keeps_no_other_from_being_read(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2), job(1, 1), job(1, 2))

    def meanwhile(jobs: Sequence[Job], _heard: Heard) -> None:
        if any(one.shard == SHARDS[0] for one in jobs):
            raise StoreUnavailable("partition 0 has no leader")

    runs = Runs(meanwhile)
    begun = bench.clock.monotonic()
    bench.worker(runs).run_until_done(lambda: bench.clock.monotonic() - begun > 600)
    both, first, second = [(0, 1), (1, 1), (0, 2), (1, 2)], [(0, 1), (0, 2)], [(1, 1), (1, 2)]
    assert runs.runs[:3] == [both, first, second]
    assert set(bench.states(1).values()) == {JobState.DONE}
    # The other one is tried again, less and less often.
    assert runs.runs[3:] == [first] * (len(runs.runs) - 3)
    assert 10 <= len(runs.runs[3:]) <= 20
    assert {(one.state, one.failures) for one in bench.store.jobs(SHARDS[0])} == {(JobState.PENDING, 0)}


def test_shards_that_could_be_read_are_read_together_again(bench: Bench) -> None:
    bench.plan(job(0, 1), job(1, 1))
    is_away = [True]

    def meanwhile(_jobs: Sequence[Job], _heard: Heard) -> None:
        if is_away:
            is_away.clear()
            raise StoreUnavailable("the store is away")

    runs = Runs(meanwhile)
    worker = bench.worker(runs)
    worker.run_until_done()
    assert runs.runs == [[(0, 1), (1, 1)], [(0, 1)], [(1, 1)]]
    bench.plan(job(0, 2), job(1, 2))
    worker.run_until_done()
    assert runs.runs[3:] == [[(0, 2), (1, 2)]]


def test_a_run_that_stands_still_is_given_up_and_a_job_alone_has_failed(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))

    def hangs(_jobs: Sequence[Job], heard: Heard) -> None:
        for _ in range(100):
            bench.clock.sleep(10)
            heard(0.25)
        pytest.fail("the run went on")

    worker = bench.worker(Runs(hangs), stall_s=600.0)
    begun = bench.clock.monotonic()
    worker.step()
    assert bench.clock.monotonic() - begun == 610
    assert [one.failures for one in bench.store.jobs(SHARDS[0])] == [0, 0]
    worker.step()
    assert [one.failures for one in bench.store.jobs(SHARDS[0])] == [1, 0]
    assert "stood still at 25% for 600 s" in bench.job(1).reason


def test_a_run_that_gets_on_slowly_is_not_given_up(bench: Bench) -> None:
    bench.plan(job(0, 1))

    def slow(_jobs: Sequence[Job], heard: Heard) -> None:
        for part in range(100):
            bench.clock.sleep(STALL_S - 1)
            heard(part / 100)
            heard(part / 100)

    bench.worker(Runs(slow)).step()
    assert bench.states() == {1: JobState.DONE}


def test_a_wave_has_so_many_jobs_at_the_most(bench: Bench) -> None:
    bench.plan(*(job(0, bucket) for bucket in range(5)))
    runs = Runs()
    bench.worker(runs, wave_jobs=2).run_until_done()
    assert list(map(len, runs.runs)) == [2, 2, 1]


@pytest.mark.parametrize("error", [BadRecord("no"), ReplayFailed("Spark gave up"), RuntimeError("a bug")])
def test_past_the_failures_allowed_a_plan_stops_and_the_worker_leaves_its_shard_alone(
    bench: Bench, error: Exception
) -> None:
    bench.plan(job(0, 1), job(0, 9), job(1, 20))
    runs = fails_with(error, 1)
    begun = bench.clock.monotonic()
    bench.worker(runs, wave_records=10).run_until_done()
    # Bucket 9 comes before bucket 20 of the other shard, and is not tried. The other shard need not wait.
    assert runs.runs == [[(0, 1)], [(1, 20)], [(0, 1)], [(0, 1)], [(0, 1)]]
    assert bench.states() == {1: JobState.FAILED, 9: JobState.PENDING}
    assert (bench.job(1).failures, bench.job(1).epoch) == (4, 4)
    # Not all tries at one moment: what is wrong may be Kafka.
    assert bench.clock.monotonic() - begun >= 1 + 2 + 4


def test_what_may_pass_is_no_failure_and_is_tried_again_after_a_pause(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))
    is_away = [True] * 6

    def meanwhile(_jobs: Sequence[Job], _heard: Heard) -> None:
        if is_away:
            is_away.pop()
            raise StoreUnavailable("the store is away")

    runs = Runs(meanwhile)
    begun = bench.clock.monotonic()
    bench.worker(runs).run_until_done()
    assert runs.runs == [[(0, 1), (0, 2)]] * 7
    assert bench.states() == {1: JobState.DONE, 2: JobState.DONE}
    assert bench.job(1).failures == 0
    assert bench.clock.monotonic() - begun >= 1 + 2 + 4 + 8 + 16 + 32


def test_what_keeps_jobs_from_being_read_can_be_seen(bench: Bench) -> None:
    bench.plan(job(0, 1))
    bench.worker(fails_with(StoreUnavailable("the store is away"), 1)).step()
    assert bench.job(1).state is JobState.PENDING
    assert bench.job(1).reason == "offsets [10, 20): StoreUnavailable: the store is away"


def test_a_job_whose_lease_was_lost_meanwhile_is_not_marked_as_done(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))

    def meanwhile(_jobs: Sequence[Job], _heard: Heard) -> None:
        there = bench.job(1)
        assert bench.store.replace_job(there, replace(there, epoch=there.epoch + 1, worker="v"))

    bench.worker(Runs(meanwhile)).step()
    assert bench.states() == {1: JobState.LEASED, 2: JobState.DONE}
    assert bench.job(1).worker == "v"


def test_a_run_ends_early_once_all_of_its_leases_are_lost(bench: Bench) -> None:
    bench.plan(job(0, 1))
    reached: list[float] = []

    def meanwhile(jobs: Sequence[Job], heard: Heard) -> None:
        bench.store.remove_job(jobs[0])
        renewed.wait(timeout=60)
        heard(0.5)
        reached.append(0.5)

    renewed = threading.Event()
    keeper_renew = LeaseKeeper.renew_if_due

    def renew_now(keeper: LeaseKeeper) -> None:
        bench.clock.sleep(21)
        keeper_renew(keeper)
        renewed.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LeaseKeeper, "renew_if_due", renew_now)
        bench.worker(Runs(meanwhile)).step()
    assert reached == []
    assert bench.states() == {}


def test_leases_are_renewed_while_a_run_lasts(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))
    seen = threading.Event()

    class Watched:
        def __getattr__(self, name: str) -> Any:
            return getattr(bench.store, name)

        def replace_job(self, before: Job, after: Job) -> bool:
            is_replaced = bench.store.replace_job(before, after)
            if before.state is after.state is JobState.LEASED and before.bucket == 2:
                seen.set()
            return is_replaced

    first_end = bench.clock.now_ms() + 120_000

    def meanwhile(_jobs: Sequence[Job], _heard: Heard) -> None:
        bench.clock.sleep(20)
        assert seen.wait(timeout=60)
        assert all(one.leased_until == first_end + 20_000 for one in bench.store.jobs(SHARDS[0]))

    bench.worker(Runs(meanwhile), store=Watched()).step()
    assert bench.states() == {1: JobState.DONE, 2: JobState.DONE}


def test_a_keeper_renews_when_it_is_time_and_not_before(bench: Bench) -> None:
    bench.plan(job(0, 1))
    held = bench.board.lease(bench.job(1), "w")
    assert held is not None
    keeper = LeaseKeeper(bench.board, [held])
    bench.clock.sleep(19.9)
    keeper.renew_if_due()
    assert bench.job(1) == held
    bench.clock.sleep(0.1)
    keeper.renew_if_due()
    assert bench.job(1).leased_until == held.leased_until + 20_000
    assert keeper.held([held]) == [bench.job(1)]
    assert keeper.finish(held)
    assert keeper.held([held]) == []
    assert not keeper.finish(held)


def test_a_keeper_leaves_leases_to_run_out_if_the_work_is_silent_for_too_long(bench: Bench) -> None:
    bench.plan(job(0, 1))
    held = bench.board.lease(bench.job(1), "w")
    assert held is not None
    keeper = LeaseKeeper(bench.board, [held], most_silence_s=100.0)
    bench.clock.sleep(90)
    keeper.note_progress()
    bench.clock.sleep(90)
    keeper.renew_if_due()
    assert bench.job(1).leased_until == held.leased_until + 180_000
    bench.clock.sleep(20)
    keeper.renew_if_due()
    assert bench.job(1).leased_until == held.leased_until + 180_000


def test_a_lease_that_could_not_be_renewed_is_kept_as_long_as_nobody_else_has_it(bench: Bench) -> None:
    bench.plan(job(0, 1))
    held = bench.board.lease(bench.job(1), "w")
    assert held is not None

    class Away:
        def replace_job(self, *_: object) -> bool:
            raise StoreUnavailable("the store is away")

        def jobs(self, shard: ShardId) -> Sequence[Job]:
            return bench.store.jobs(shard)

    away: Any = Away()
    keeper = LeaseKeeper(JobBoard(away, bench.clock), [held])
    bench.clock.sleep(1_000)
    keeper.renew_if_due()
    assert keeper.held([held]) == [held]
    keeper.release_all()
    assert bench.job(1) == held


def test_a_worker_that_is_to_stop_gives_back_what_it_has_not_done(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))
    stopping = threading.Event()

    def meanwhile(_jobs: Sequence[Job], heard: Heard) -> None:
        stopping.set()
        heard(0.5)
        pytest.fail("the run went on")

    bench.worker(Runs(meanwhile)).run_until_done(stopping.is_set)
    assert bench.states() == {1: JobState.PENDING, 2: JobState.PENDING}
    assert (bench.job(1).failures, bench.job(1).worker) == (0, "")


def test_a_worker_that_is_interrupted_gives_back_what_it_has(bench: Bench) -> None:
    bench.plan(job(0, 1))

    def meanwhile(_jobs: Sequence[Job], _heard: Heard) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.worker(Runs(meanwhile)).step()
    assert bench.states() == {1: JobState.PENDING}


def test_jobs_that_others_have_are_waited_for_and_taken_once_their_leases_run_out(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))
    assert bench.board.lease(bench.job(1), "lost") is not None
    begun = bench.clock.monotonic()
    runs = Runs()
    bench.worker(runs).run_until_done()
    assert runs.runs == [[(0, 2)], [(0, 1)]]
    assert bench.clock.monotonic() - begun >= 120
    assert bench.states() == {1: JobState.DONE, 2: JobState.DONE}


def test_a_worker_stays_for_as_long_as_it_is_told_to(bench: Bench) -> None:
    bench.plan(job(0, 1))
    looks = 0

    def stop() -> bool:
        nonlocal looks
        looks += 1
        if looks == 5:
            bench.plan(job(1, 7))
        return False

    runs = Runs()
    bench.worker(runs).run_until_done(stop, idle_s=30.0)
    assert runs.runs == [[(0, 1)], [(1, 7)]]
    assert bench.clock.monotonic() >= 30.0


def test_two_workers_share_the_jobs(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2), job(0, 3))
    second = Runs()

    def meanwhile(_jobs: Sequence[Job], _heard: Heard) -> None:
        bench.worker(second, "v", wave_records=100).step()

    first = Runs(meanwhile)
    bench.worker(first, wave_records=10).step()
    assert (first.runs, second.runs) == ([[(0, 1)]], [[(0, 2), (0, 3)]])
    assert set(bench.states().values()) == {JobState.DONE}
