"""Shards that were down while records arrived, and their recovery by workers."""

import pytest

from support.shard_world import HOUR, World, produce_everywhere


def hours_without_a_shard(world: World, hours: int, *, name: str = "a") -> None:
    """Produce records each hour without a running shard."""
    for hour in range(hours):
        produce_everywhere(world, name, float(hour))
        world.pass_time(HOUR)


def recover(world: World, *beside: World) -> None:
    """Run workers and the shard until the shard is active. Time passes in all worlds."""
    for _ in range(20):
        world.work()
        for each in (world, *beside):
            each.pass_time(1_000)
        world.settle()
        if world.is_active():
            return
    pytest.fail(f"the shard is still {world.status.phase}")
