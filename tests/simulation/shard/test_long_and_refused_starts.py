"""Starts that take long, coincide with an expiry, follow a rewind, or are refused."""

from dataclasses import replace

import pytest

from strandline.errors import Fatal
from strandline.node.shard.ownership import StillOwned, take_shard
from strandline.node.shard.running import RunningShard
from strandline.node.shard.status import Phase
from strandline.recovery.offset_policy import Accepted
from strandline.store.protocol import StoreUnavailable
from strandline.store.rows import ManifestWrite
from support.shard_world import MINUTE, StoreCall, World, no_fault, produce_everywhere

pytestmark = pytest.mark.simulation


def test_an_index_bucket_that_expires_during_the_load_does_not_fail_the_start(world: World) -> None:
    world.start()
    for hour in range(12):
        world.produce(("m", "always", world.clock.now_ms(), 1.0), ("m", str(hour), world.clock.now_ms(), 1.0))
        world.pass_hours(1)
    world.crash()
    oldest = min(
        row.data_expires
        for row in world.manifest().groups
        if row.index is not None and row.data_expires > world.clock.now_ms()
    )
    world.pass_time(oldest - world.clock.now_ms() - 10)

    def a_load_takes_time(call: StoreCall) -> None:
        if call.name == "index_bucket":
            world.pass_time(5)

    world.store.before = a_load_takes_time
    world.start()
    world.store.before = no_fault
    assert world.keys().get(("m", "always"))


def test_an_owner_writes_heartbeats_while_it_loads_its_index(world: World) -> None:
    world.start()
    for _ in range(4):
        produce_everywhere(world)
        world.pass_hours(1)
    world.crash()
    beats: list[int] = []

    def a_load_takes_minutes(call: StoreCall) -> None:
        if call.name == "index_bucket":
            world.pass_time(MINUTE)
            state = world.sqlite.state(world.options.shard)
            assert state is not None
            beats.append(state.beats)

    world.store.after = a_load_takes_minutes
    world.start()
    assert beats == [0, 1, 2, 3], "a watcher sees a higher count each minute"
    # A tool at the end of the load, while the owner is alive.
    with pytest.raises(StillOwned):
        take_shard(world.sqlite, world.options.shard, "topic-1", world.clock, world.machine.process())


def test_after_a_rewind_the_buckets_are_read_again(world: World) -> None:
    world.start()
    world.produce(("m", "a", world.clock.now_ms(), 1.0))
    world.pass_hours(1)
    world.produce(("m", "a", world.clock.now_ms(), 2.0), ("m", "b", world.clock.now_ms(), 2.0))
    world.pass_hours(1)
    keys = world.keys()
    newest = world.manifest().cuts[0].bucket
    again = tuple(replace(row, superseded=True) for row in world.rows(newest).values())
    world.sqlite.commit(world.running.ownership, ManifestWrite(groups=again, present=world.clock.now_ms()))
    world.crash()
    world.start()
    world.settle()
    assert world.keys() == keys
    world.check_all_found()


def test_a_rewind_does_not_confuse_series(world: World) -> None:
    """The same with a record in between, so that ids could be confused."""
    world.start()
    world.produce(("m", "a", world.clock.now_ms(), 1.0))
    world.pass_hours(1)
    world.produce(("m", "c", world.clock.now_ms(), 1.0))
    world.pass_hours(1)
    world.produce(("m", "c", world.clock.now_ms(), 3.0), ("m", "a", world.clock.now_ms(), 2.0))
    world.pass_hours(1)
    newest = world.manifest().cuts[0].bucket
    again = tuple(
        replace(row, superseded=True) for bucket in (newest, newest - 1) for row in world.rows(bucket).values()
    )
    world.sqlite.commit(world.running.ownership, ManifestWrite(groups=again, present=world.clock.now_ms()))
    world.crash()
    world.start()
    world.settle()
    world.check_all_found()


def seen_at(world: World) -> int | None:
    state = world.sqlite.state(world.options.shard)
    assert state is not None
    return state.seen_at


def test_a_refused_start_leaves_the_shard_without_an_owner(world: World) -> None:
    world.start()
    produce_everywhere(world)
    world.settle()
    world.running.close()
    world.crash()
    assert seen_at(world) is None
    world.log.delete_before(1)
    with pytest.raises(Fatal):
        world.start()
    assert seen_at(world) is None, "it has no owner; otherwise, tools would be refused for 30 s"


def test_a_load_continues_after_a_failed_heartbeat(world: World) -> None:
    world.start()
    for _ in range(4):
        produce_everywhere(world)
        world.pass_hours(1)
    world.crash()

    def slow_without_heartbeats(call: StoreCall) -> None:
        if call.name == "index_bucket":
            world.pass_time(MINUTE)
        if call.name == "touch":
            raise StoreUnavailable("no answer in time")

    world.store.before = slow_without_heartbeats
    world.start()
    world.store.before = no_fault
    world.settle()
    assert world.is_active()


def test_a_stop_takes_effect_while_the_index_is_loaded(world: World) -> None:
    world.start()
    for _ in range(6):
        produce_everywhere(world)
        world.pass_hours(1)
    world.crash()
    parts = world.parts()
    running = RunningShard(parts, accepted=Accepted())
    loaded = 0

    def stop_at_the_first(call: StoreCall) -> None:
        nonlocal loaded
        if call.name == "index_bucket":
            loaded += 1
            running.stop()

    world.store.before = stop_at_the_first
    running.run()
    assert loaded <= 2, f"{loaded} buckets were loaded in vain"
    assert running.status.phase is Phase.STOPPED
