"""How a worker handles failures."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strandline.recovery import replay_worker
from strandline.recovery.failure_tracking import was_lost_once
from strandline.recovery.lease_keeper import LeaseKeeper
from strandline.recovery.leasing import LeaseLost, LeasePolicy, count_failure, reclaim
from strandline.recovery.replay.job_result import attempt_of
from strandline.recovery.replay.runner import ReplayFailed, SessionLost
from strandline.recovery.replay_worker import STALL_S
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


def test_if_a_wave_fails_its_jobs_are_read_one_by_one_and_only_the_bad_one_has_failed(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2), job(0, 3))
    runs = failing_runner(BadRecord("offset 25"), 2)
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
    assert [job.failures for job in bench.store.jobs(SHARDS[0])] == [0, 1, 0]


def test_no_attempt_is_run_twice(bench: Bench) -> None:
    """Jobs are divided in one way in a wave and in another way alone: the results of both must not be mixed."""
    bench.plan(job(0, 1), job(0, 2), job(1, 1))
    attempts: list[tuple[ShardId, int, str]] = []
    divided: dict[tuple[ShardId, int, str], int] = {}

    def during_run(jobs: Sequence[Job], _on_progress: OnProgress) -> None:
        for leased in jobs:
            attempts.append((leased.shard, leased.bucket, attempt_of(leased)))
            divided[attempts[-1]] = len(jobs)
        if len(jobs) > 1 or jobs[0].failures < 2:
            raise ReplayFailed("a task was lost")

    bench.worker(FakeRunner(during_run)).run_until_done()
    assert len(set(attempts)) == len(attempts) == 3 * (1 + 3)
    done = [job for shard in SHARDS for job in bench.store.jobs(shard)]
    assert [(job.state, job.failures) for job in done] == [(JobState.DONE, 2)] * 3
    assert {divided[job.shard, job.bucket, attempt_of(job)] for job in done} == {1}


def test_a_suspect_of_another_worker_is_read_alone_too(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))
    bench.worker(failing_runner(BadRecord("no"), 1, 2)).step()
    runs = FakeRunner()
    bench.worker(runs, "v").run_until_done()
    assert runs.runs == [[(0, 1)], [(0, 2)]]


def lose_worker(bench: Bench, buckets: Sequence[int], name: str) -> None:
    """A worker leases these and dies; another worker watches the leases for a term and reclaims them."""
    for bucket in buckets:
        assert bench.board.lease(bench.job(bucket), name) is not None
    bench.board.reclaim_lost(SHARDS[0])
    bench.clock.sleep(bench.board.policy.lease_ms / 1000)
    bench.board.reclaim_lost(SHARDS[0])


def test_after_a_lost_worker_one_job_is_read_alone_and_then_all_others_in_one_wave(bench: Bench) -> None:
    buckets = range(1, 25)
    bench.plan(*(job(0, bucket) for bucket in buckets))
    lose_worker(bench, buckets, "lost")
    runs = FakeRunner()
    bench.worker(runs).run_until_done()
    assert runs.runs == [[(0, 1)], [(0, bucket) for bucket in buckets[1:]]]
    assert set(bench.states().values()) == {JobState.DONE}


def test_a_job_that_was_lost_with_two_workers_is_read_alone(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2), job(0, 3), job(0, 4))
    for name in ("lost", "also lost"):
        lose_worker(bench, (2, 3), name)
    runs = FakeRunner()
    bench.worker(runs).run_until_done()
    assert runs.runs == [[(0, 1)], [(0, 2)], [(0, 3)], [(0, 4)]]


def test_where_a_second_loss_would_be_final_jobs_are_read_alone_after_the_first(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2), job(0, 3))
    lose_worker(bench, (1, 2, 3), "lost")
    runs = FakeRunner()
    bench.worker(runs, policy=LeasePolicy(failures_allowed=1)).run_until_done()
    assert runs.runs == [[(0, 1)], [(0, 2)], [(0, 3)]]


def test_a_bad_job_among_many_is_found_by_halving_and_only_it_has_failed(bench: Bench) -> None:
    buckets = range(1, 17)
    bench.plan(*(job(0, bucket) for bucket in buckets))
    runs = failing_runner(BadRecord("offset 135"), 13)
    bench.worker(runs).run_until_done(lambda: bench.job(13).failures > 0)
    sizes = [len(run) for run in runs.runs]
    # After each wave that failed: one alone, half as many as in that wave, all that remain.
    assert sizes == [16, 1, 8, 7, 1, 3, 1, 1, 4, 1]
    assert runs.runs[-1] == [(0, 13)]
    assert [job.bucket for job in bench.store.jobs(SHARDS[0]) if job.failures] == [13]


def test_a_wave_of_jobs_lost_to_another_worker_begins_with_one_alone_again(bench: Bench) -> None:
    bench.plan(*(job(0, bucket) for bucket in range(1, 9)))
    lose_worker(bench, (1, 2, 3, 4), "lost")
    runs = FakeRunner()
    worker = bench.worker(runs, wave_jobs=4)
    worker.step()
    worker.step()
    lose_worker(bench, (6, 7, 8), "lost later")
    worker.run_until_done()
    assert runs.runs == [[(0, 1)], [(0, 2), (0, 3), (0, 4), (0, 5)], [(0, 6)], [(0, 7), (0, 8)]]


def test_the_reason_of_a_lost_lease_is_recognised(bench: Bench) -> None:
    bench.plan(job(0, 1))
    leased = bench.board.lease(bench.job(1), "lost")
    assert leased is not None
    assert was_lost_once(reclaim(leased, LeasePolicy()))
    assert not was_lost_once(count_failure(leased, "BadRecord: no", LeasePolicy()))


def test_a_suspect_that_another_worker_has_leased_in_the_meantime_stays_a_suspect(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))
    errors: list[Exception] = [BadRecord("no")]

    def during_run(_jobs: Sequence[Job], _on_progress: OnProgress) -> None:
        if errors:
            raise errors.pop()

    runs = FakeRunner(during_run)
    worker = bench.worker(runs)
    worker.step()
    for bucket in (1, 2):
        held = bench.board.lease(bench.job(bucket), "v")
        assert held is not None
        assert bench.board.release(held, "the store is away")
    worker.run_until_done()
    assert runs.runs == [[(0, 1), (0, 2)], [(0, 1)], [(0, 2)]]


def test_a_suspect_stays_a_suspect_until_it_was_read(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))
    errors: list[Exception] = [StoreUnavailable("the store is away"), BadRecord("no")]

    def during_run(_jobs: Sequence[Job], _on_progress: OnProgress) -> None:
        if errors:
            raise errors.pop()

    runs = FakeRunner(during_run)
    bench.worker(runs).run_until_done()
    assert runs.runs == [[(0, 1), (0, 2)], [(0, 1)], [(0, 1)], [(0, 2)]]
    assert [job.failures for job in bench.store.jobs(SHARDS[0])] == [0, 0]


def test_a_wave_whose_leases_were_all_lost_leaves_no_suspects(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))
    is_lost = [True]

    def during_run(_jobs: Sequence[Job], _on_progress: OnProgress) -> None:
        if is_lost:
            is_lost.clear()
            raise LeaseLost("taken")

    runs = FakeRunner(during_run)
    bench.worker(runs).run_until_done()
    assert runs.runs == [[(0, 1), (0, 2)]] * 2


def test_a_runner_that_has_lost_its_session_ends_the_worker_and_only_a_job_alone_has_failed(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))
    lost = failing_runner(SessionLost("the JVM is gone"), 1, 2)
    with pytest.raises(SessionLost):
        bench.worker(lost).run_until_done()
    assert [(job.state, job.failures) for job in bench.store.jobs(SHARDS[0])] == [(JobState.PENDING, 0)] * 2
    # The next process reads them one by one, so that a job that ends the session each time is found.
    with pytest.raises(SessionLost):
        bench.worker(lost, "v").run_until_done()
    assert lost.runs == [[(0, 1), (0, 2)], [(0, 1)]]
    assert [(job.state, job.failures) for job in bench.store.jobs(SHARDS[0])] == [
        (JobState.PENDING, 1),
        (JobState.PENDING, 0),
    ]


def test_a_lost_session_ends_the_worker_also_if_the_store_is_unavailable(bench: Bench) -> None:
    bench.plan(job(0, 1))

    class Away:
        def __getattr__(self, name: str) -> Any:
            return getattr(bench.store, name)

        def replace_job(self, before: Job, after: Job) -> bool:
            if before.state is JobState.LEASED:
                raise StoreUnavailable("the store is away")
            return bench.store.replace_job(before, after)

    with pytest.raises(SessionLost):
        bench.worker(failing_runner(SessionLost("the JVM is gone"), 1), store=Away()).run_until_done()


def test_a_shard_that_cannot_be_read_does_not_block_others(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2), job(1, 1), job(1, 2))

    def during_run(jobs: Sequence[Job], _on_progress: OnProgress) -> None:
        if any(job.shard == SHARDS[0] for job in jobs):
            raise StoreUnavailable("partition 0 has no leader")

    runs = FakeRunner(during_run)
    begun = bench.clock.monotonic()
    bench.worker(runs).run_until_done(lambda: bench.clock.monotonic() - begun > 600)
    both, first, second = [(0, 1), (1, 1), (0, 2), (1, 2)], [(0, 1), (0, 2)], [(1, 1), (1, 2)]
    assert runs.runs[:3] == [both, first, second]
    assert set(bench.states(1).values()) == {JobState.DONE}
    # The other one is retried, less and less often.
    assert runs.runs[3:] == [first] * (len(runs.runs) - 3)
    assert 10 <= len(runs.runs[3:]) <= 20
    assert {(job.state, job.failures) for job in bench.store.jobs(SHARDS[0])} == {(JobState.PENDING, 0)}


def test_shards_that_could_be_read_are_read_together_again(bench: Bench) -> None:
    bench.plan(job(0, 1), job(1, 1))
    is_away = [True]

    def during_run(_jobs: Sequence[Job], _on_progress: OnProgress) -> None:
        if is_away:
            is_away.clear()
            raise StoreUnavailable("the store is away")

    runs = FakeRunner(during_run)
    worker = bench.worker(runs)
    worker.run_until_done()
    assert runs.runs == [[(0, 1), (1, 1)], [(0, 1)], [(1, 1)]]
    bench.plan(job(0, 2), job(1, 2))
    worker.run_until_done()
    assert runs.runs[3:] == [[(0, 2), (1, 2)]]


def test_a_stalled_run_is_given_up_and_a_job_alone_has_failed(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))

    def hangs(_jobs: Sequence[Job], on_progress: OnProgress) -> None:
        for _ in range(100):
            bench.clock.sleep(10)
            on_progress(0.25)
        pytest.fail("the run continued")

    worker = bench.worker(FakeRunner(hangs), stall_s=600.0)
    begun = bench.clock.monotonic()
    worker.step()
    assert bench.clock.monotonic() - begun == 610
    assert [job.failures for job in bench.store.jobs(SHARDS[0])] == [0, 0]
    worker.step()
    assert [job.failures for job in bench.store.jobs(SHARDS[0])] == [1, 0]
    assert "made no progress for 600 s, at 25%" in bench.job(1).reason


def test_a_run_with_slow_progress_is_not_given_up(bench: Bench) -> None:
    bench.plan(job(0, 1))

    def slow(_jobs: Sequence[Job], on_progress: OnProgress) -> None:
        for part in range(100):
            bench.clock.sleep(STALL_S - 1)
            on_progress(part / 100)
            on_progress(part / 100)

    bench.worker(FakeRunner(slow)).step()
    assert bench.states() == {1: JobState.DONE}


@pytest.mark.parametrize("error", [BadRecord("no"), ReplayFailed("Spark gave up"), RuntimeError("a bug")])
def test_after_the_allowed_failures_a_plan_stops_and_the_worker_skips_its_shard(bench: Bench, error: Exception) -> None:
    bench.plan(job(0, 1), job(0, 9), job(1, 20))
    runs = failing_runner(error, 1)
    begun = bench.clock.monotonic()
    bench.worker(runs, wave_records=10).run_until_done()
    # Bucket 9 comes before bucket 20 of the other shard, and is not tried. The other shard need not wait.
    assert runs.runs == [[(0, 1)], [(1, 20)], [(0, 1)], [(0, 1)], [(0, 1)]]
    assert bench.states() == {1: JobState.FAILED, 9: JobState.PENDING}
    assert (bench.job(1).failures, bench.job(1).epoch) == (4, 4)
    # The attempts are spread over time, because the cause may be Kafka.
    assert bench.clock.monotonic() - begun >= 1 + 2 + 4


def test_a_temporary_error_is_not_a_failure_and_is_retried_after_a_pause(bench: Bench) -> None:
    bench.plan(job(0, 1), job(0, 2))
    is_away = [True] * 6

    def during_run(_jobs: Sequence[Job], _on_progress: OnProgress) -> None:
        if is_away:
            is_away.pop()
            raise StoreUnavailable("the store is away")

    runs = FakeRunner(during_run)
    begun = bench.clock.monotonic()
    bench.worker(runs).run_until_done()
    assert runs.runs == [[(0, 1), (0, 2)]] * 7
    assert bench.states() == {1: JobState.DONE, 2: JobState.DONE}
    assert bench.job(1).failures == 0
    assert bench.clock.monotonic() - begun >= 1 + 2 + 4 + 8 + 16 + 32


def test_the_error_that_keeps_jobs_from_being_read_is_reported(bench: Bench) -> None:
    bench.plan(job(0, 1))
    bench.worker(failing_runner(StoreUnavailable("the store is away"), 1)).step()
    assert bench.job(1).state is JobState.PENDING
    assert bench.job(1).reason == "offsets [10, 20): StoreUnavailable: the store is away"


def test_leases_of_a_run_without_progress_are_not_renewed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.plan(job(0, 1))
    keepers: list[LeaseKeeper] = []

    class Kept(LeaseKeeper):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            keepers.append(self)

    monkeypatch.setattr(replay_worker, "LeaseKeeper", Kept)

    def renewed_after(seconds: float) -> bool:
        bench.clock.sleep(seconds)
        keepers[0].renew_if_due()
        return bench.job(1).leased_until == bench.clock.now_ms() + 120_000

    def during_run(_jobs: Sequence[Job], on_progress: OnProgress) -> None:
        bench.clock.sleep(600)
        on_progress(0.5)
        assert renewed_after(2 * 600 - 10)
        assert not renewed_after(30)

    bench.worker(FakeRunner(during_run), stall_s=600.0).step()
    assert bench.states() == {1: JobState.DONE}, "no other worker has taken it, so it counts"
