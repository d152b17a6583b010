"""One history in three worlds: without faults; with crashes, after which the shard reads what it missed; and with
crashes, after which workers do. All end with the same keys and the same samples.
"""

import shutil
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from strandline.node.shard.options import ReplayMode
from strandline.recovery.replay.memory_runner import TaskSizes
from strandline.store.protocol import StoreUnavailable
from support.shard_world import HOUR, MINUTE, POLICY, Crash, StoreCall, World, no_fault

pytestmark = pytest.mark.simulation

MEMORY = Path("/dev/shm")
METRICS = st.sampled_from(["m0", "m1", "m2", "m3", "m4"])
NAMES = st.sampled_from("abc")
# A sample: metric, name, minutes before its record, and value.
SAMPLES = st.lists(
    st.tuples(METRICS, NAMES, st.sampled_from([0, 0, 0, 1, 30, 61, 150]), st.integers(0, 9)), min_size=1, max_size=8
)


class ThreeWays(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="strandline-", dir=MEMORY if MEMORY.is_dir() else None))
        self.worlds: list[World] = []

    @initialize(groups=st.sampled_from([1, 3]), series_limit=st.sampled_from([6, 1_000]))
    def begin(self, groups: int, series_limit: int) -> None:
        policy = replace(POLICY, retention=200 * HOUR)
        for name in ("calm", "direct", "workers"):
            (self.folder / name).mkdir()
            self.worlds.append(
                World(self.folder / name, groups=groups, policy=policy, series_limit=series_limit, seal_rows=7)
            )
        self.calm, self.direct, self.workers = self.worlds
        self.is_limited = series_limit < 1_000
        self.direct.replay_by(ReplayMode.DIRECT)
        self.workers.replay_by(ReplayMode.SPARK)
        for world in self.worlds:
            world.start()

    def teardown(self) -> None:
        if self.worlds:
            for world in self.worlds:
                self.finish(world)
            # Time passed until the others had finished, and may have closed a bucket.
            for world in self.worlds:
                world.settle()
            expected = self.calm.found()
            for world in (self.direct, self.workers):
                assert world.keys() == self.calm.keys()
                assert world.found() == expected
            if not self.is_limited:
                for world in self.worlds:
                    world.check_all_found()
            assert not self.workers.sqlite.jobs(self.workers.options.shard)
        for world in self.worlds:
            world.close()
        shutil.rmtree(self.folder)

    def finish(self, world: World) -> None:
        """Let a world finish without further faults."""
        world.store.before = world.store.after = no_fault
        if world.shard is None:
            world.start()
        # The same worker throughout: only a worker that has watched a lease for its whole term takes it over from a
        # worker that may still be alive.
        worker = world.replays.worker(world.machine.process())
        for _ in range(30):
            while worker.step():
                pass
            self.pass_time(10_000)
            world.settle()
            if world.is_active() and world.running.is_fully_stored:
                return
        raise AssertionError(f"the shard is still {world.status.phase}")

    def pass_time(self, milliseconds: int) -> None:
        for world in self.worlds:
            world.pass_time(milliseconds)
        self.calm.settle()

    @rule(samples=SAMPLES, minutes=st.sampled_from([0, 1, 20]))
    def a_record_comes(self, samples: list[tuple[str, str, int, int]], minutes: int) -> None:
        for world in self.worlds:
            now = world.clock.now_ms()
            world.produce(*((metric, name, now - ago * MINUTE, float(value)) for metric, name, ago, value in samples))
        self.pass_time(minutes * MINUTE)

    @rule()
    def a_transaction_is_aborted(self) -> None:
        for world in self.worlds:
            world.abort_transaction()

    @rule(hours=st.sampled_from([1, 1, 2, 4]))
    def hours_pass(self, hours: int) -> None:
        for _ in range(hours):
            self.pass_time(HOUR)

    @rule()
    def the_shards_start(self) -> None:
        for world in (self.direct, self.workers):
            if world.shard is None:
                world.start()

    @rule(steps=st.integers(1, 8))
    def the_shards_read(self, steps: int) -> None:
        self.pass_time(1_000)
        for world in (self.direct, self.workers):
            for _ in range(steps if world.shard is not None else 0):
                world.running.step()

    @rule(pieces=st.integers(1, 12))
    def some_groups_are_stored(self, pieces: int) -> None:
        for world in (self.direct, self.workers):
            for _ in range(pieces if world.shard is not None else 0):
                world.running.flusher.step()

    @rule(
        waves=st.integers(1, 3),
        records=st.sampled_from([1, 3, 100]),
        split=st.sampled_from([TaskSizes(1, 1), TaskSizes(2, 1, max_samples=1), TaskSizes(100, 3)]),
    )
    def a_worker_works(self, waves: int, records: int, split: TaskSizes) -> None:
        worker = self.workers.replays.worker(split=split, wave_records=records)
        for _ in range(waves):
            worker.step()

    @rule(call=st.integers(0, 25), after=st.booleans(), crashes=st.sampled_from(["shard", "worker"]))
    def a_crash_at_a_call(self, call: int, *, after: bool, crashes: str) -> None:
        for world in (self.direct, self.workers):
            left = call

            def hook(_call: StoreCall) -> None:
                nonlocal left
                left -= 1
                if left < 0:
                    raise Crash

            if after:
                world.store.after = hook
            else:
                world.store.before = hook
            with suppress(Crash):
                if crashes == "worker":
                    world.replays.worker().step()
                else:
                    if world.shard is None:
                        world.start()
                    world.settle()
            world.store.before = world.store.after = no_fault
            if crashes == "shard":
                world.crash()

    @rule(name=st.sampled_from(["commit", "result", "jobs", "replace_job", "write_segments"]), after=st.booleans())
    def the_store_does_not_answer_some_calls(self, name: str, *, after: bool) -> None:
        def hook(call: StoreCall) -> None:
            if call.name == name:
                raise StoreUnavailable("no answer")

        self.pass_time(1_000)
        for world in (self.direct, self.workers):
            if world.shard is None:
                continue
            if after:
                world.store.after = hook
            else:
                world.store.before = hook
            world.store_due(most=20)
            world.store.before = world.store.after = no_fault

    @rule()
    def a_crash(self) -> None:
        for world in (self.direct, self.workers):
            world.crash()

    @invariant()
    def no_checkpoint_is_past_what_is_stored(self) -> None:
        for world in self.worlds:
            if not self.is_limited:
                world.check_stored_once()


ThreeWays.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestThreeWays = ThreeWays.TestCase
