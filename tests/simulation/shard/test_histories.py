"""Random histories of a shard: records, hours, failures of the store and crashes, in any order. In the end, every
sample is found once with its value, the keys equal those of a shard that never crashed, and the stored data equals the
records between the cuts.
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


class ShardHistory(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="strandline-", dir=MEMORY if MEMORY.is_dir() else None))
        (self.folder / "calm").mkdir()
        self.worlds: list[World] = []

    @initialize(groups=st.sampled_from([1, 3]), seal_rows=st.sampled_from([1, 7, 1000]))
    def begin(self, groups: int, seal_rows: int) -> None:
        # Nothing expires within a history: the histories of the index cover that.
        policy = replace(POLICY, retention=200 * HOUR)
        self.world = World(self.folder, groups=groups, seal_rows=seal_rows, policy=policy)
        # Another world with the same records and without faults, for the expected keys.
        self.calm = World(self.folder / "calm", groups=groups, policy=policy)
        self.worlds = [self.world, self.calm]
        for world in self.worlds:
            world.start()

    def teardown(self) -> None:
        if self.worlds:
            self.recover()
            for world in self.worlds:
                world.settle()
            self.world.check_all_found()
            assert self.world.keys() == self.calm.keys()
        for world in self.worlds:
            world.close()
        shutil.rmtree(self.folder)

    @rule(samples=SAMPLES, minutes=st.sampled_from([0, 1, 20]))
    def a_record_comes(self, samples: list[tuple[str, str, int, int]], minutes: int) -> None:
        for world in self.worlds:
            now = world.clock.now_ms()
            world.produce(*((metric, name, now - ago * MINUTE, float(value)) for metric, name, ago, value in samples))
            world.pass_time(minutes * MINUTE)
        # It is read before time passes: when the clock closes a bucket depends on what was read before.
        self.calm.settle()
        self.both_read()

    @rule()
    def a_transaction_is_aborted(self) -> None:
        for world in self.worlds:
            world.abort_transaction()

    @rule(hours=st.sampled_from([1, 1, 2, 4]))
    def hours_pass(self, hours: int) -> None:
        for _ in range(hours):
            for world in self.worlds:
                world.pass_time(HOUR)
            self.calm.settle()
            self.both_read()

    def both_read(self) -> None:
        """The shard reads. A crash during that is followed by a start that reads the same."""
        self.recover()
        try:
            self.world.read_all()
        except Crash:
            self.world.crash()
            self.recover()
            self.world.read_all()

    def recover(self) -> None:
        if self.world.shard is None:
            self.world.start()

    @rule(pieces=st.integers(1, 12))
    def some_groups_are_stored(self, pieces: int) -> None:
        for _ in range(pieces):
            self.world.running.flusher.step()
        self.world.running.step()

    @rule()
    def everything_due_is_stored(self) -> None:
        self.world.settle()

    @rule()
    def pages_are_merged(self) -> None:
        while self.world.running.buffer.maintain():
            pass

    @rule(call=st.integers(0, 12), after=st.booleans())
    def a_crash_at_a_call(self, call: int, *, after: bool) -> None:
        left = call

        def hook(_call: StoreCall) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Crash

        if after:
            self.world.store.after = hook
        else:
            self.world.store.before = hook
        with suppress(Crash):
            self.world.store_due()
        self.world.crash()
        self.both_read()

    @rule(failing=st.integers(0, 2), after=st.booleans())
    def the_store_does_not_answer_for_a_while(self, failing: int, *, after: bool) -> None:
        """With `after`, the rows are written, but the answer is lost."""

        def hook(call: StoreCall) -> None:
            if call.writes_group == failing or (call.name == "commit" and failing == 2):
                raise StoreUnavailable("no answer")

        if after:
            self.world.store.after = hook
        else:
            self.world.store.before = hook
        self.world.store_due(most=40)
        self.world.store.before = self.world.store.after = no_fault

    @rule()
    def a_crash(self) -> None:
        self.world.crash()
        self.both_read()

    @invariant()
    def every_sample_is_found(self) -> None:
        if self.worlds and self.world.shard is not None:
            assert self.world.found() == self.world.expected()
            assert self.world.keys() == self.calm.keys()


TestShardHistory = ShardHistory.TestCase
TestShardHistory.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
