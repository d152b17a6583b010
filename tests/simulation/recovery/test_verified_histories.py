"""Random histories of a shard after which, and at any moment of which, verification of the store succeeds. The
histories are those of the shard's own simulation, with crashes at any call to the store; and others in which keys are
purged and return, stored data is rewound and written again, and records are lost.
"""

import shutil
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule
from simulation.shard.test_histories import ShardHistory

from strandline.recovery.offset_policy import Accepted
from strandline.recovery.rewinding import RewindRefused, ToBucket
from support.rewound_worlds import rewind_world
from support.shard_world import HOUR, POLICY, World
from support.verifying import assert_world_sound

pytestmark = pytest.mark.simulation


class VerifiedHistory(ShardHistory):
    """Nothing expires in it, so that all produced samples must be found."""

    @rule()
    def the_store_is_verified(self) -> None:
        assert_world_sound(self.world)

    def teardown(self) -> None:
        try:
            if self.worlds:
                self.recover()
                self.world.settle()
                for world in self.worlds:
                    assert_world_sound(world)
        finally:
            super().teardown()


class ShortLivedHistory(ShardHistory):
    """Keys are purged after hours, and may return. Another simulation checks which samples are found."""

    @initialize(
        groups=st.sampled_from([1, 3]),
        retention=st.sampled_from([2, 3]),
        series_limit=st.sampled_from([4, 1000]),
        history=st.sampled_from([0, 200]),
    )
    def begin(self, groups: int, retention: int, series_limit: int, history: int) -> None:  # type: ignore[override]
        policy = replace(POLICY, retention=retention * HOUR, margin=4 * HOUR)
        self.world = World(self.folder, groups=groups, policy=policy, series_limit=series_limit, history=history * HOUR)
        self.worlds = [self.world]
        # The world without faults is not used here.
        self.calm = self.world
        self.world.start()

    def every_sample_is_found(self) -> None:
        """Not checked here."""

    def recover(self) -> None:
        if self.world.shard is None:
            self.world.start(accepted=Accepted(loss_to=self.world.log.ends().start))

    @rule()
    def the_store_is_verified(self) -> None:
        assert_world_sound(self.world)

    @rule(buckets=st.integers(0, 6))
    def what_was_stored_is_rewound(self, buckets: int) -> None:
        self.world.crash()
        newest = self.world.manifest().cuts[0].bucket
        try:
            rewind_world(self.world, ToBucket(newest - buckets), take=True)
        except RewindRefused:
            pass
        else:
            assert_world_sound(self.world)
        self.both_read()

    @rule(records=st.integers(1, 3))
    def records_are_lost(self, records: int) -> None:
        self.world.crash()
        ends = self.world.log.ends()
        self.world.log.delete_before(min(ends.start + records, ends.last_stable))
        self.both_read()

    @rule(hours=st.sampled_from([2, 3, 6]))
    def another_retention(self, hours: int) -> None:
        self.world.crash()
        options = self.world.options
        self.world.options = replace(options, policy=replace(options.policy, retention=hours * HOUR))
        self.both_read()

    @rule(series_limit=st.sampled_from([2, 4, 1000]))
    def less_room_for_series(self, series_limit: int) -> None:
        """Only lower limits: series refused while half of a bucket was stored would be missing from that half."""
        self.world.crash()
        limit = min(series_limit, self.world.options.series_limit)
        self.world.options = replace(self.world.options, series_limit=limit)
        self.both_read()

    def teardown(self) -> None:
        try:
            if self.worlds:
                self.recover()
                self.world.settle()
                assert_world_sound(self.world)
        finally:
            for world in self.worlds:
                world.close()
            shutil.rmtree(self.folder)


TestVerifiedHistory = VerifiedHistory.TestCase
TestVerifiedHistory.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestShortLivedHistory = ShortLivedHistory.TestCase
TestShortLivedHistory.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
