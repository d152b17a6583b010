"""A worker: which jobs it takes, and what it reports."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strandline.recovery.job_board import JobBoard
from strandline.recovery.lease_keeper import LeaseKeeper
from strandline.store.jobs import Job, JobState
from strandline.store.protocol import StoreUnavailable
from strandline.store.rows import ShardId
from support.worker_bench import SHARDS, BadRecord, Bench, FakeRunner, OnProgress, failing_runner, job

pytestmark = pytest.mark.unit


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.store.close()


def test_a_worker_reads_all_jobs_the_most_urgent_first_and_then_exits(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2), job(0, 3), job(1, 1))
    runs = FakeRunner()
    bench.worker(runs, wave_records=20).run_until_done()
    assert runs.runs == [[(0, 1), (1, 1)], [(0, 2), (0, 3)]]
    assert {*bench.states(0).values(), *bench.states(1).values()} == {JobState.DONE}


def test_a_runner_is_given_leased_jobs_under_their_new_epochs(bench: Bench) -> None:
    bench.plan(job(0, 1), replace(job(0, 2), epoch=4))
    given: list[Job] = []
    bench.worker(FakeRunner(lambda jobs, _: given.extend(jobs))).step()
    assert [(job.state, job.worker, job.epoch) for job in given] == [
        (JobState.LEASED, "w", 1),
        (JobState.LEASED, "w", 5),
    ]


def test_a_worker_without_work_does_nothing(bench: Bench) -> None:
    runs = FakeRunner()
    assert not bench.worker(runs).step()
    bench.worker(runs).run_until_done()
    assert runs.runs == []


def test_progress_is_reported_with_its_jobs(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))
    bench.worker(FakeRunner(lambda _, on_progress: on_progress(0.5))).step()
    assert bench.progress_reports() == [([1, 2], 0.5), ([1, 2], 1.0)]


def test_only_jobs_that_are_marked_as_done_are_reported_as_done(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))

    def during_run(_jobs: Sequence[Job], on_progress: OnProgress) -> None:
        on_progress(1.0)
        assert bench.store.remove_job(bench.job(1))

    bench.worker(FakeRunner(during_run)).step()
    assert bench.progress_reports() == [([2], 1.0)]


def test_failed_jobs_are_not_reported_as_done(bench: Bench) -> None:
    bench.plan(job(0, 1))
    bench.worker(failing_runner(BadRecord("no"), 1)).step()
    assert bench.progress == []


def test_a_wave_has_at_most_max_jobs(bench: Bench) -> None:
    bench.plan(*(job(0, bucket) for bucket in range(5)))
    runs = FakeRunner()
    bench.worker(runs, wave_jobs=2).run_until_done()
    assert list(map(len, runs.runs)) == [2, 2, 1]


def test_a_job_whose_lease_was_lost_in_the_meantime_is_not_marked_as_done(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))

    def during_run(_jobs: Sequence[Job], _on_progress: OnProgress) -> None:
        stored = bench.job(1)
        assert bench.store.replace_job(stored, replace(stored, epoch=stored.epoch + 1, worker="v"))

    bench.worker(FakeRunner(during_run)).step()
    assert bench.states() == {1: JobState.LEASED, 2: JobState.DONE}
    assert bench.job(1).worker == "v"


def test_a_run_ends_early_once_all_of_its_leases_are_lost(bench: Bench) -> None:
    bench.plan(job(0, 1))
    reached: list[float] = []

    def during_run(jobs: Sequence[Job], on_progress: OnProgress) -> None:
        bench.store.remove_job(jobs[0])
        renewed.wait(timeout=60)
        on_progress(0.5)
        reached.append(0.5)

    renewed = threading.Event()
    keeper_renew = LeaseKeeper.renew_if_due

    def renew_now(keeper: LeaseKeeper) -> None:
        bench.clock.sleep(21)
        keeper_renew(keeper)
        renewed.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LeaseKeeper, "renew_if_due", renew_now)
        bench.worker(FakeRunner(during_run)).step()
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

    def during_run(_jobs: Sequence[Job], _on_progress: OnProgress) -> None:
        bench.clock.sleep(20)
        assert seen.wait(timeout=60)
        assert all(job.leased_until == first_end + 20_000 for job in bench.store.jobs(SHARDS[0]))

    bench.worker(FakeRunner(during_run), store=Watched()).step()
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


def test_a_keeper_stops_renewing_after_too_long_without_progress(bench: Bench) -> None:
    bench.plan(job(0, 1))
    held = bench.board.lease(bench.job(1), "w")
    assert held is not None
    keeper = LeaseKeeper(bench.board, [held], max_silence_s=100.0)
    bench.clock.sleep(90)
    keeper.note_progress()
    bench.clock.sleep(90)
    keeper.renew_if_due()
    assert bench.job(1).leased_until == held.leased_until + 180_000
    bench.clock.sleep(20)
    keeper.renew_if_due()
    assert bench.job(1).leased_until == held.leased_until + 180_000


def test_a_lease_whose_renewal_failed_is_kept_as_long_as_no_other_worker_has_it(bench: Bench) -> None:
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


def test_a_worker_that_is_to_stop_releases_unfinished_jobs(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))
    stopping = threading.Event()

    def during_run(_jobs: Sequence[Job], on_progress: OnProgress) -> None:
        stopping.set()
        on_progress(0.5)
        pytest.fail("the run continued")

    bench.worker(FakeRunner(during_run)).run_until_done(stopping.is_set)
    assert bench.states() == {1: JobState.PENDING, 2: JobState.PENDING}
    assert (bench.job(1).failures, bench.job(1).worker) == (0, "")


def test_a_worker_that_is_interrupted_releases_its_jobs(bench: Bench) -> None:
    bench.plan(job(0, 1))

    def during_run(_jobs: Sequence[Job], _on_progress: OnProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.worker(FakeRunner(during_run)).step()
    assert bench.states() == {1: JobState.PENDING}


def test_jobs_of_other_workers_are_awaited_and_taken_once_their_leases_expire(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))
    assert bench.board.lease(bench.job(1), "lost") is not None
    begun = bench.clock.monotonic()
    runs = FakeRunner()
    bench.worker(runs).run_until_done()
    assert runs.runs == [[(0, 2)], [(0, 1)]]
    assert bench.clock.monotonic() - begun >= 120
    assert bench.states() == {1: JobState.DONE, 2: JobState.DONE}


def test_an_idle_worker_ends_after_its_idle_time(bench: Bench) -> None:
    bench.plan(job(0, 1))
    polls = 0

    def stop() -> bool:
        nonlocal polls
        polls += 1
        if polls == 5:
            bench.plan(job(1, 7))
        return False

    runs = FakeRunner()
    bench.worker(runs).run_until_done(stop, idle_s=30.0)
    assert runs.runs == [[(0, 1)], [(1, 7)]]
    assert bench.clock.monotonic() >= 30.0


def test_two_workers_share_the_jobs(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2), job(0, 3))
    second = FakeRunner()

    def during_run(_jobs: Sequence[Job], _on_progress: OnProgress) -> None:
        bench.worker(second, "v", wave_records=100).step()

    first = FakeRunner(during_run)
    bench.worker(first, wave_records=10).step()
    assert (first.runs, second.runs) == ([[(0, 1)]], [[(0, 2), (0, 3)]])
    assert set(bench.states().values()) == {JobState.DONE}
