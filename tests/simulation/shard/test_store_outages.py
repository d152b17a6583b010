"""Closed buckets that wait for the store: what they cost, and that reading does not run away from it."""

from collections.abc import Callable

import pytest

from strandline.node.shard.options import FlushTiming
from strandline.store.protocol import StoreUnavailable
from support.shard_world import (
    GRACE,
    HOUR,
    MINUTE,
    StoreCall,
    World,
    group_fails,
    other_group,
    produce_everywhere,
    quietly,
)

pytestmark = pytest.mark.simulation


def store_is_away(call: StoreCall) -> None:
    if call.name in {"commit", "write_segments", "touch"}:
        raise StoreUnavailable("the store is not there")


def test_a_shard_outlives_hours_without_its_store(world: World) -> None:
    world.start()
    produce_everywhere(world)
    world.pass_hours(1)
    world.store.before = store_is_away
    for hour in range(4):
        produce_everywhere(world, str(hour))
        world.pass_hours(1)
    assert len(world.running.flusher.closed_buckets()) == 4
    world.store.before = quietly
    world.pass_time(MINUTE)
    world.settle()
    assert not world.running.flusher.closed_buckets()
    world.check_all_found()


def test_reading_waits_for_the_store_rather_than_fill_the_disk(make_world: Callable[..., World]) -> None:
    world = make_world(buffer_bytes=1, spill_bytes=40_000, seal_rows=64, poll_records=64)
    world.start()
    world.store.before = store_is_away
    for hour in range(100):
        for _ in range(6):
            produce_everywhere(world, str(hour))
            world.pass_time(10 * MINUTE)
        for _ in range(3):
            world.running.step()
    read = world.running.position
    assert read < len(world.produced), "it has stopped reading"
    world.running.step()
    assert world.status.lag == len(world.produced) - read, "and says how far behind that is"
    assert world.running.memory.spill.used < 40_000
    world.store.before = quietly
    world.pass_time(MINUTE)
    while world.running.position < len(world.produced):
        world.running.step()
        world.running.flusher.step()
    world.settle()
    world.check_stored_once()


def test_a_replay_does_not_read_on_while_many_buckets_wait(make_world: Callable[..., World]) -> None:
    world = make_world(poll_records=1)
    for hour in range(30):
        produce_everywhere(world, str(hour))
        world.pass_time(60 * MINUTE)
    world.start()
    for _ in range(60):
        world.running.step()
    assert 2 <= len(world.running.flusher.closed_buckets()) < 15
    while world.running.position < len(world.produced):
        world.running.step()
        world.running.flusher.step()
    world.settle()
    world.check_stored_once()


def test_reading_does_not_wait_for_a_turn_in_the_spread(
    make_world: Callable[..., World],
) -> None:
    """The store is well and idle; what fills the disk only waits for its quiet moment."""
    world = make_world(buffer_bytes=1, seal_rows=16, poll_records=64, flush=FlushTiming(spread=0.8))
    world.start()
    for n in range(100):
        produce_everywhere(world, str(n))
    world.settle()
    assert world.is_active()
    world.pass_time(HOUR + GRACE)
    produce_everywhere(world, "closes the bucket")
    world.running.step()
    world.running.memory.spill.limit = world.running.memory.spill.used * 3 // 2
    produce_everywhere(world, "next")
    waited = 0
    while world.running.position < len(world.produced):
        while world.running.flusher.step() == 0:
            pass
        world.running.step()
        world.pass_time(10_000)
        waited += 10_000
    assert waited <= MINUTE, f"nothing was read for {waited // MINUTE} minutes, and nothing is wrong with the store"


def test_one_stuck_group_does_not_stop_the_reading_that_would_close_the_open_bucket(
    make_world: Callable[..., World],
) -> None:
    """What fills the disk is the open bucket, which only polling can close."""
    world = make_world(buffer_bytes=1, spill_bytes=40_000, seal_rows=16, poll_records=64)
    world.start()
    produce_everywhere(world)
    world.read_all()
    world.store.before = group_fails(other_group(world))
    world.pass_hours(1)  # Some hundred bytes wait for one group.
    for n in range(150):
        produce_everywhere(world, str(n))
        world.running.step()
    world.pass_time(HOUR)
    produce_everywhere(world, "closes the bucket")
    for _ in range(20):
        world.running.step()
        world.running.flusher.step()
        world.pass_time(MINUTE)
    assert world.running.position == len(world.produced), "it waits for a cut that only reading brings"
