"""Shards that were away while records came, and their recovery by workers."""

import pytest

from support.shard_world import HOUR, World, produce_everywhere


def hours_without_a_shard(world: World, hours: int, *, name: str = "a") -> None:
    """Records come each hour, and nobody reads them."""
    for hour in range(hours):
        produce_everywhere(world, name, float(hour))
        world.pass_time(HOUR)


def recover(world: World, *beside: World) -> None:
    """Let workers and shard go on until the shard is active. Time passes in all worlds."""
    for _ in range(20):
        world.work()
        for one in (world, *beside):
            one.pass_time(1_000)
        world.settle()
        if world.is_active():
            return
    pytest.fail(f"the shard is still {world.status.phase}")
