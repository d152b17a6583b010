"""Random histories with rewinds: records, hours, crashes, and rewinds that complete or are interrupted. Once a shard
has caught up, its samples and keys equal those of a shard that was never rewound.
"""

from contextlib import ExitStack, suppress
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from strandline.recovery.rewinding import ToBucket
from support.rewound_worlds import check_stored_exactly_once, rewind_world, worlds
from support.shard_world import HOUR, MINUTE, POLICY, Crash, StoreCall, World, no_fault

pytestmark = pytest.mark.simulation

METRICS = st.sampled_from(["m0", "m1", "m2", "m3"])
# A sample: metric, name, minutes before its record, and value.
SAMPLES = st.lists(
    st.tuples(METRICS, st.sampled_from("abc"), st.sampled_from([0, 0, 1, 61, 150]), st.integers(0, 9)),
    min_size=1,
    max_size=6,
)


class RewoundHistory(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.opened = ExitStack()
        self.both: tuple[World, ...] = ()

    @initialize(groups=st.sampled_from([1, 3]), live_hours=st.sampled_from([1, 2]))
    def begin(self, groups: int, live_hours: int) -> None:
        make = self.opened.enter_context(worlds())
        policy = replace(POLICY, retention=200 * HOUR, stale_after=live_hours * HOUR)
        self.world, self.calm = make(groups=groups, policy=policy), make(groups=groups, policy=policy)
        self.both = (self.world, self.calm)
        for world in self.both:
            world.start()

    def teardown(self) -> None:
        try:
            if self.both:
                self.catch_up()
                self.world.crash()
                self.catch_up()
        finally:
            self.opened.close()

    def catch_up(self) -> None:
        """As far as there are records: when the clock closes a bucket depends on what was read before."""
        if self.world.shard is None:
            self.world.start()
        self.calm.settle()
        check_stored_exactly_once(self.world)
        assert self.world.keys() == self.calm.keys()
        assert not any(row.superseded for row in self.world.manifest().groups)

    @rule(samples=SAMPLES, minutes=st.sampled_from([0, 1, 20]))
    def a_record_comes(self, samples: list[tuple[str, str, int, int]], minutes: int) -> None:
        for world in self.both:
            now = world.clock.now_ms()
            world.produce(*((metric, name, now - ago * MINUTE, float(value)) for metric, name, ago, value in samples))
            world.pass_time(minutes * MINUTE)
        self.catch_up()

    @rule(hours=st.sampled_from([1, 1, 2]))
    def hours_pass(self, hours: int) -> None:
        for _ in range(hours):
            for world in self.both:
                world.pass_time(HOUR)
            self.catch_up()

    @rule(
        back=st.integers(1, 6),
        most_rows=st.sampled_from([1, 3, 7, 1000]),
        commits=st.sampled_from([0, 1, 2, 1000]),
        pieces=st.integers(0, 20),
    )
    def it_is_rewound(self, back: int, most_rows: int, commits: int, pieces: int) -> None:
        """Some buckets back, or as far as possible. The following start may crash after storing some groups."""
        self.world.crash()
        cuts = [cut for cut in self.world.manifest().cuts if not cut.reset]
        if not cuts:
            return
        left = commits

        def cut_off(call: StoreCall) -> None:
            nonlocal left
            left -= call.name == "commit"
            if left < 0:
                raise Crash

        self.world.store.before = cut_off
        with suppress(Crash):
            target = ToBucket(max(cuts[-1].bucket, cuts[0].bucket + 1 - back))
            rewind_world(self.world, target, take=True, most_rows=most_rows)
        self.world.store.before = no_fault
        self.world.start()
        self.world.running.step()
        for _ in range(pieces):
            self.world.running.flusher.step()
            self.world.running.step()
        self.world.crash()

    @rule()
    def it_crashes(self) -> None:
        self.world.crash()


TestRewoundHistory = RewoundHistory.TestCase
TestRewoundHistory.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
