"""Watching jobs with few reads, and without blocking the event loop."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from strandline.clock import ManualClock
from strandline.jobs.board import BulkBoard, NoSuchJob
from strandline.jobs.counts import Counts
from strandline.node.job_watch.store_thread import StoreDoesNotAnswer, StoreThread
from strandline.node.job_watch.watch import JobsWatch
from strandline.store.bulk_jobs import BulkJob, BulkJobState, BulkPart, Wanted
from strandline.store.jobs import JobState
from strandline.store.protocol import StoreUnavailable
from support.full_figures import NOW, bulk_job, job_parts
from support.http_servers import eventually, in_loop
from support.memory_store import MemoryServer, MemoryStore

pytestmark = pytest.mark.unit

DAY = 86_400_000


class CountedStore(MemoryStore):
    """Counts reads, and may fail or hang."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(MemoryServer(clock))
        self.clock, self.takes_s = clock, 0.0
        self.reads: Counter[str] = Counter()
        self.error: Exception | None = None
        self.answers = threading.Event()
        self.answers.set()

    def bulk_jobs(self, dataset: str) -> Sequence[BulkJob]:
        self.reads["jobs"] += 1
        self.answers.wait()
        if self.error is not None:
            raise self.error
        return super().bulk_jobs(dataset)

    def bulk_parts(self, dataset: str, job: str) -> Sequence[BulkPart]:
        self.reads[job] += 1
        self.clock.sleep(self.takes_s)
        return super().bulk_parts(dataset, job)


class WatchedStore:
    """A watch over a store in memory."""

    def __init__(self, **options: Any) -> None:
        self.clock = ManualClock(NOW)
        self.store = CountedStore(self.clock)
        self.opened, self.opening_s = 0, 0.0
        self.board = BulkBoard(self.store, "metrics", self.clock)
        self.watch = JobsWatch(self.opener, "Cassandra at db:9042", self.clock, **options)

    @contextmanager
    def opener(self) -> Iterator[BulkBoard]:
        self.opened += 1
        self.clock.sleep(self.opening_s)
        yield self.board

    def add(self, job: BulkJob, states: Sequence[JobState] = (), counts: Counts | None = None) -> None:
        all_states = [*states, *[JobState.PENDING] * (job.parts - len(states))]
        self.board.add(job, job_parts(job, all_states, counts))


@contextmanager
def hanging(store: CountedStore) -> Iterator[None]:
    store.answers.clear()
    try:
        yield
    finally:
        store.answers.set()


def test_requests_within_seconds_share_one_poll() -> None:
    watched = WatchedStore()
    watched.add(bulk_job("a"), [JobState.DONE], Counts(records=3))

    async def run() -> None:
        figures = await asyncio.gather(*(watched.watch.jobs() for _ in range(20)))
        assert {each.jobs["a"].summary.counts.records for each in figures} == {21}
        watched.clock.sleep(1.9)
        await watched.watch.jobs()
        assert watched.store.reads == {"jobs": 1, "a": 1}
        watched.clock.sleep(0.2)
        await watched.watch.jobs()
        assert watched.store.reads == {"jobs": 2, "a": 2}
        assert watched.opened == 1
        await watched.watch.stop()

    in_loop(run())


def test_polls_of_a_large_job_take_a_tenth_of_the_time_and_opening_the_store_does_not_count() -> None:
    watched = WatchedStore()
    watched.add(bulk_job("a"))
    watched.store.takes_s, watched.opening_s = 1.0, 8.0

    async def run() -> None:
        await watched.watch.jobs()
        watched.clock.sleep(9.9)
        await watched.watch.jobs()
        assert watched.store.reads["jobs"] == 1
        watched.clock.sleep(0.2)
        await watched.watch.jobs()
        assert watched.store.reads["jobs"] == 2
        await watched.watch.stop()

    in_loop(run())


def test_parts_of_a_job_that_has_ended_are_read_once() -> None:
    watched = WatchedStore(cache_s=0)
    watched.add(bulk_job("a", BulkJobState.FAILED), [JobState.FAILED] * 7)
    watched.add(bulk_job("b"))

    async def run() -> None:
        for _ in range(3):
            await watched.watch.jobs()
        assert (watched.store.reads["a"], watched.store.reads["b"]) == (1, 3)
        assert (await watched.watch.resume("a")).state is BulkJobState.RUNNING
        before = watched.store.reads["a"]
        assert (await watched.watch.jobs()).jobs["a"].row.state is BulkJobState.RUNNING
        assert watched.store.reads["a"] == before + 1
        await watched.watch.stop()

    in_loop(run())


def test_a_change_invalidates_the_cached_jobs() -> None:
    watched = WatchedStore()
    watched.add(bulk_job("a"))

    async def run() -> None:
        await watched.watch.jobs()
        await watched.watch.request_stop("a", Wanted.PAUSED)
        assert (await watched.watch.jobs()).jobs["a"].summary.wanted == "paused"
        await watched.watch.stop()

    in_loop(run())


def test_an_expired_job_is_cancelled_though_no_worker_runs() -> None:
    watched = WatchedStore(cache_s=0)
    watched.add(bulk_job("a", BulkJobState.PAUSED, idle_since=NOW, expires_after=DAY))

    async def run() -> None:
        assert (await watched.watch.jobs()).jobs["a"].row.state is BulkJobState.PAUSED
        watched.clock.sleep(DAY / 1000)
        assert (await watched.watch.jobs()).jobs["a"].row.state is BulkJobState.CANCELLED
        assert watched.board.job("a").state is BulkJobState.CANCELLED
        await watched.watch.stop()

    in_loop(run())


def test_a_store_failure_is_named_and_counted_and_cached_figures_stay() -> None:
    watched = WatchedStore(cache_s=0)
    watched.add(bulk_job("a"))

    async def run() -> None:
        await watched.watch.jobs()
        watched.store.error = StoreUnavailable("no host of three answers", remedy="Check them")
        with pytest.raises(StoreDoesNotAnswer, match=r"Cassandra at db:9042 .*: no host of three answers. Check them"):
            await watched.watch.jobs()
        figures = watched.watch.figures()
        assert (figures.failures, list(figures.jobs), figures.looked_at) == (1, ["a"], NOW)
        watched.store.error = None
        await watched.watch.jobs()
        await watched.watch.stop()

    in_loop(run())


def test_a_hanging_store_is_reported_after_a_timeout_and_does_not_block_the_event_loop() -> None:
    watched = WatchedStore(timeout_s=0.05)
    watched.add(bulk_job("a"))

    async def run() -> None:
        with hanging(watched.store):
            with pytest.raises(StoreDoesNotAnswer, match=r"Cassandra at db:9042 has not answered for 0.05 s"):
                await watched.watch.jobs()
            # It waits for the hanging call, and is not made after its own timeout.
            with pytest.raises(StoreDoesNotAnswer, match="has not answered"):
                await watched.watch.request_stop("a", Wanted.CANCELLED)
        with pytest.raises(NoSuchJob):
            await watched.watch.status("b")
        assert watched.board.job("a").wanted is Wanted.NOTHING
        await watched.watch.stop()

    in_loop(run())


def test_too_many_requests_that_wait_for_a_hanging_store_are_refused_at_once() -> None:
    async def run() -> None:
        hangs, begun = threading.Event(), threading.Event()

        @contextmanager
        def opener() -> Iterator[None]:
            begun.set()
            hangs.wait()
            yield None

        thread: StoreThread[None] = StoreThread(opener, "SQLite")
        waiting = [asyncio.ensure_future(thread.call(lambda _: 1)) for _ in range(32)]
        await eventually(begun.is_set)
        with pytest.raises(StoreDoesNotAnswer, match="32 requests are already waiting for SQLite"):
            await thread.call(lambda _: 1)
        hangs.set()
        assert await asyncio.gather(*waiting) == [1] * 32
        assert await thread.call(lambda _: 2) == 2
        await asyncio.to_thread(thread.close)

    in_loop(run())


def test_a_client_that_disconnects_does_not_end_a_poll_that_others_wait_for() -> None:
    watched = WatchedStore()
    watched.add(bulk_job("a"))

    async def run() -> None:
        with hanging(watched.store):
            cancelled, waiting = (asyncio.ensure_future(watched.watch.jobs()) for _ in range(2))
            await eventually(lambda: watched.store.reads["jobs"] == 1)
            cancelled.cancel()
        assert list((await waiting).jobs) == ["a"]
        await watched.watch.stop()

    in_loop(run())


def test_it_polls_periodically_and_continues_after_a_failure() -> None:
    watched = WatchedStore(interval_s=0.01, cache_s=0)
    watched.store.error = ValueError("an unexpected error")

    async def run() -> None:
        watched.watch.start()
        await eventually(lambda: watched.store.reads["jobs"] >= 2)
        watched.store.error = None
        await eventually(lambda: watched.watch.figures().looked_at is not None)
        await watched.watch.stop()

    in_loop(run())
