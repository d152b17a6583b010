"""Rows that have outlived the cut of their bucket are not a fault."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.recovery.offset_policy import Accepted
from strandline.recovery.rewinding import ToBucket
from support.rewound_worlds import rewind_world, stop_shard
from support.shard_world import HOUR, MINUTE, POLICY, World, group_fails, no_fault, other_group, produce_everywhere
from support.verifying import assert_world_sound

pytestmark = pytest.mark.unit


def live(world: World, hours: int) -> None:
    for _ in range(hours):
        produce_everywhere(world)
        world.pass_hours(1)


def test_a_row_that_outlives_its_cut_is_sound(tmp_path: Path) -> None:
    with closing(World(tmp_path, history=0)) as world:
        world.start()
        world.store.before = group_fails(other_group(world))
        live(world, 4)
        world.store.before = no_fault
        world.pass_time(MINUTE)
        world.settle()
        outlived = False
        for _ in range(11):
            live(world, 1)
            assert_world_sound(world)
            manifest = world.manifest()
            outlived |= min(row.bucket for row in manifest.groups) < min(cut.bucket for cut in manifest.cuts)
        assert outlived


def test_a_row_that_a_rewind_wrote_under_a_longer_retention_is_sound_after_its_cut_has_expired(tmp_path: Path) -> None:
    policy = replace(POLICY, retention=2 * HOUR, margin=4 * HOUR)
    with closing(World(tmp_path, groups=1, history=0, policy=policy)) as world:
        world.start()
        live(world, 4)
        stop_shard(world)
        world.options = replace(world.options, policy=replace(policy, retention=6 * HOUR))
        world.start()
        live(world, 1)
        stop_shard(world)
        rewind_world(world, ToBucket(min(cut.bucket for cut in world.manifest().cuts if not cut.reset)))
        world.start()
        outlived = False
        for _ in range(6):
            live(world, 1)
            assert_world_sound(world)
            manifest = world.manifest()
            outlived |= min(row.bucket for row in manifest.groups) < min(cut.bucket for cut in manifest.cuts)
        assert outlived


def test_a_row_that_outlives_the_cut_of_a_bucket_which_a_loss_closed_early_is_sound(tmp_path: Path) -> None:
    with closing(World(tmp_path, groups=1, history=0)) as world:
        world.start()
        world.crash()
        produce_everywhere(world)
        world.log.delete_before(1)
        world.start(accepted=Accepted(loss_to=1))
        world.settle()
        (row,) = world.manifest().groups
        (cut,) = [cut for cut in world.manifest().cuts if cut.lost_to is not None]
        assert row.written_at < (row.bucket + 1) * HOUR, "before the end of the bucket"
        assert cut.expires < row.expires
        world.crash()
        world.pass_time(cut.expires - world.clock.now_ms())
        assert_world_sound(world)
