"""Two coordinators and several workers at once on one shard's jobs, with crashes, stalls and workers that wake up late.

Every change of a job passes through a store that checks it: who makes it, under which lease, and whether that is
permitted. Between a read and the following write of a coordinator or worker, any other process may act.
"""

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from strandline.clock import ManualClock
from strandline.recovery.job_board import JobBoard, JobProgress
from strandline.recovery.leasing import LeasePolicy
from strandline.recovery.plan_id import new_plan_id
from strandline.recovery.replay.job_result import attempt_of
from strandline.store.jobs import Job, JobState
from strandline.store.protocol import Store, StoreUnavailable
from strandline.store.sqlite import open_sqlite_store
from support.manifest_rows import NEVER, SHARD

pytestmark = pytest.mark.simulation

MEMORY = Path("/dev/shm")
POLICY = LeasePolicy(failures_allowed=2)
WORKERS, COORDINATORS = ("w1", "w2", "w3"), ("c1", "c2")
Attempt = tuple[int, str]


@dataclass
class ChangeChecker:
    """Checks which changes are permitted."""

    clock: ManualClock
    is_gone: Callable[[str], bool]
    leased: dict[Attempt, str] = field(default_factory=dict)
    renewed_at: dict[Attempt, int] = field(default_factory=dict)
    done: set[Attempt] = field(default_factory=set)

    def changed(self, actor: str, before: Job, after: Job) -> None:
        attempt = (before.bucket, attempt_of(before))
        assert after.epoch >= before.epoch
        if before.state is JobState.PENDING and after.state is JobState.LEASED:
            new = (after.bucket, attempt_of(after))
            assert new not in self.leased, "two leases share an attempt"
            self.leased[new] = actor
            self.renewed_at[new] = self.clock.now_ms()
        elif before.state is JobState.LEASED and actor in WORKERS:
            is_silent = self.clock.now_ms() - self.renewed_at[attempt] >= POLICY.lease_ms
            is_lost = is_silent or self.is_gone(before.worker)
            self.renewed_at[attempt] = self.clock.now_ms()
            is_own = self.leased[attempt] == actor == before.worker
            assert is_own or (is_lost and after.state in (JobState.PENDING, JobState.FAILED)), "it holds no lease of it"
            if after.state is JobState.DONE:
                assert attempt not in self.done, "done twice under one epoch"
                self.done.add(attempt)
        elif actor in WORKERS:
            pytest.fail(f"{actor} changed a job that is {before.state} to {after.state}")


class WatchedStore:
    """A store as one actor sees it. `between` is called before each change, and may let others act. An answer may be
    lost.
    """

    def __init__(self, store: Store, actor: str, watch: ChangeChecker, between: Callable[[], None]) -> None:
        self._store, self._actor, self._watch, self._between = store, actor, watch, between
        self.loses_answer = False

    def jobs(self, shard: Any) -> Sequence[Job]:
        return self._store.jobs(shard)

    def add_job(self, job: Job) -> bool:
        self._between()
        assert job.plan not in {plan.rpartition(".")[0] for bucket, plan in self._watch.leased if bucket == job.bucket}
        return self._lose_answer_or(self._store.add_job(job))

    def replace_job(self, before: Job, after: Job) -> bool:
        self._between()
        is_replaced = self._store.replace_job(before, after)
        if is_replaced:
            self._watch.changed(self._actor, before, after)
        return self._lose_answer_or(is_replaced)

    def remove_job(self, job: Job) -> bool:
        self._between()
        assert self._actor in COORDINATORS
        return self._lose_answer_or(self._store.remove_job(job))

    def _lose_answer_or(self, answer: bool) -> bool:
        if self.loses_answer:
            self.loses_answer = False
            raise StoreUnavailable("no answer")
        return answer


class LeasedJobs(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="strandline-", dir=MEMORY if MEMORY.is_dir() else None))
        self.clock = ManualClock()
        self.store = open_sqlite_store(self.folder / "store.sqlite", self.clock)
        self.dead: set[str] = set()
        self.watch = ChangeChecker(self.clock, self.dead.__contains__)
        self.interventions: list[Callable[[], object]] = []
        self.stores = {
            name: WatchedStore(self.store, name, self.watch, self._intervene) for name in (*WORKERS, *COORDINATORS)
        }
        self.held: dict[str, list[Job]] = {name: [] for name in WORKERS}
        self.seen: dict[str, Sequence[Job]] = dict.fromkeys(WORKERS, ())
        self.wanted: list[Job] = []
        self.boards = {
            name: JobBoard(store, self.clock, POLICY, self.dead.__contains__)  # type: ignore[arg-type]
            for name, store in self.stores.items()
        }

    def teardown(self) -> None:
        if self.wanted:
            self._end()
        self.store.close()
        shutil.rmtree(self.folder)

    @initialize(count=st.integers(1, 4))
    def plan(self, count: int) -> None:
        groups = frozenset({0})
        self.wanted = [
            Job(SHARD, bucket, "", 10 * bucket, 10 * bucket + 10, groups, wants_keys=False, life=NEVER)
            for bucket in range(count)
        ]

    # Coordinators.

    @rule(name=st.sampled_from(COORDINATORS), starts=st.booleans(), other=st.sampled_from([None, *WORKERS]))
    def a_coordinator_adopts(self, name: str, starts: bool, other: str | None) -> None:
        if other is not None:
            self.interventions = [
                lambda: self.a_worker_takes_jobs(other, 1, None),
                lambda: self.a_worker_reports(other, "finish", lost=False),
            ]
        plan = new_plan_id(None)
        with contextlib.suppress(StoreUnavailable):
            self._board(name).adopt(SHARD, [replace(job, plan=plan) for job in self.wanted], is_start=starts)
        self.interventions = []

    @rule(bucket=st.integers(0, 3), group=st.integers(0, 2), wants_keys=st.booleans())
    def a_job_is_replanned_with_more_groups(self, bucket: int, group: int, wants_keys: bool) -> None:
        self.wanted = [
            replace(job, groups=job.groups | {group}, wants_keys=job.wants_keys or wants_keys)
            if job.bucket == bucket
            else job
            for job in self.wanted
        ]

    @rule()
    def a_new_bucket_is_complete(self) -> None:
        last = self.wanted[-1]
        if len(self.wanted) < 6:
            self.wanted.append(replace(last, bucket=last.bucket + 1, start=last.end, end=last.end + 10))

    @rule()
    def the_rows_of_the_oldest_bucket_are_committed(self) -> None:
        if len(self.wanted) > 1:
            self.wanted.pop(0)

    @rule(name=st.sampled_from([*WORKERS, *COORDINATORS]))
    def the_next_answer_is_lost(self, name: str) -> None:
        self.stores[name].loses_answer = True

    # Workers.

    @rule(name=st.sampled_from(WORKERS))
    def a_worker_reads_the_jobs(self, name: str) -> None:
        """It may act on them much later."""
        self._ignoring_lost_answers(lambda: self._read_jobs(name))

    @rule(name=st.sampled_from(WORKERS), most=st.integers(1, 3), other=st.sampled_from([None, *WORKERS]))
    def a_worker_takes_jobs(self, name: str, most: int, other: str | None) -> None:
        if other is not None:
            self.interventions = [
                lambda: self._ignoring_lost_answers(lambda: self._read_jobs(other)),
                lambda: self._take(other, 1),
            ]
        self._take(name, most)
        self.interventions = []

    @rule(
        name=st.sampled_from(WORKERS),
        what=st.sampled_from(["renew", "renew", "finish", "fail", "release"]),
        lost=st.booleans(),
    )
    def a_worker_reports(self, name: str, what: str, lost: bool) -> None:
        """On all jobs that it assumes to hold, possibly long after it held them."""
        board, kept = self._board(name), []
        self.stores[name].loses_answer |= lost
        for held in self.held[name]:
            try:
                match what:
                    case "renew":
                        kept += [renewed for renewed in [board.renew(held)] if renewed is not None]
                    case "finish":
                        board.finish(held)
                    case "fail":
                        board.fail(held, "bad")
                    case _:
                        board.release(held)
            except StoreUnavailable:
                # The worker does not notice, and continues.
                kept.append(held)
        self.held[name] = kept

    @rule(name=st.sampled_from(WORKERS), is_known=st.booleans())
    def a_worker_crashes(self, name: str, is_known: bool) -> None:
        self.held[name] = []
        self.seen[name] = ()
        if is_known:
            self.dead.add(name)

    @rule(seconds=st.sampled_from([1, 19, 60, 119, 120, 500]))
    def time_passes(self, seconds: int) -> None:
        self.clock.sleep(seconds)

    @invariant()
    def a_shard_has_one_job_per_bucket_in_a_valid_state(self) -> None:
        jobs = self.store.jobs(SHARD)
        assert len({job.bucket for job in jobs}) == len(jobs)
        for job in jobs:
            assert (job.state is JobState.LEASED) == (job.leased_until > 0)
            assert job.state is not JobState.PENDING or not job.worker
            assert (job.state is JobState.FAILED) == (job.failures > POLICY.failures_allowed)
            if job.state is JobState.DONE:
                assert (job.bucket, attempt_of(job)) in self.watch.done

    def _board(self, name: str) -> JobBoard:
        return self.boards[name]

    def _read_jobs(self, name: str) -> None:
        self.seen[name] = self._board(name).reclaim_lost(SHARD)

    def _take(self, name: str, most: int) -> None:
        """Based on the last read, which may be long ago."""
        self.dead.discard(name)  # A new process, under the same name.
        taken = 0
        for job in self.seen[name]:
            if taken == most:
                break
            try:
                held = self._board(name).lease(job, name)
            except StoreUnavailable:
                continue
            if held is not None:
                self.held[name].append(held)
                taken += 1

    def _intervene(self) -> None:
        while self.interventions:
            self.interventions.pop(0)()

    def _ignoring_lost_answers(self, act: Callable[[], None]) -> None:
        with contextlib.suppress(StoreUnavailable):
            act()

    def _end(self) -> None:
        """A coordinator adopts, and live workers run the rest: every job ends, done or failed."""
        for watched in self.stores.values():
            watched.loses_answer = False
        adopted = self._board("c1").adopt(SHARD, [replace(job, plan=new_plan_id(None)) for job in self.wanted])
        assert adopted is not None
        assert {job.bucket for job in adopted} == {job.bucket for job in self.wanted}
        for turn in range(50):
            if not any(job.state in (JobState.PENDING, JobState.LEASED) for job in self.store.jobs(SHARD)):
                break
            name = WORKERS[turn % len(WORKERS)]
            self.held[name] = []
            self._read_jobs(name)
            self._take(name, 2)
            # The oldest bucket is one that fails.
            for held in self.held[name]:
                if held.bucket == self.wanted[0].bucket:
                    self._board(name).fail(held, "bad")
                else:
                    self._board(name).finish(held)
            self.held[name] = []
            self.clock.sleep(60)
        jobs = self.store.jobs(SHARD)
        assert {job.state for job in jobs} <= {JobState.DONE, JobState.FAILED}
        progress = JobProgress.of(jobs)
        assert progress.done + len(progress.failed) == len(self.wanted)
        by_bucket = {job.bucket: job for job in self.wanted}
        for job in jobs:
            assert job.groups >= by_bucket[job.bucket].groups
            assert job.wants_keys >= by_bucket[job.bucket].wants_keys


TestLeasedJobs = LeasedJobs.TestCase
TestLeasedJobs.settings = settings(max_examples=150, stateful_step_count=40)
