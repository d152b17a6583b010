"""Closed buckets that wait for the store: their cost, and the limit of reading ahead of it."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.node.http.health import health_routes
from strandline.node.shard.index_storage import MemoryStorage
from strandline.node.shard.options import FlushTiming
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.report import report_of
from strandline.node.shard.store_health import StoreHealth, watched
from strandline.node.status.processes import ProcessState, ShardProcessStatus
from strandline.store.protocol import StoreUnavailable
from support.http_servers import in_loop, served
from support.query_worlds import LiveWorld
from support.shard_world import (
    GRACE,
    HOUR,
    MINUTE,
    StoreCall,
    World,
    group_fails,
    no_fault,
    other_group,
    produce_everywhere,
)

pytestmark = pytest.mark.simulation


def store_is_away(call: StoreCall) -> None:
    if call.name in {"commit", "write_segments", "touch"}:
        raise StoreUnavailable("the store is not there")


def test_a_shard_survives_hours_without_its_store(world: World) -> None:
    world.start()
    produce_everywhere(world)
    world.pass_hours(1)
    world.store.before = store_is_away
    for hour in range(4):
        produce_everywhere(world, str(hour))
        world.pass_hours(1)
    assert len(world.running.flusher.closed_buckets()) == 4
    world.store.before = no_fault
    world.pass_time(MINUTE)
    world.settle()
    assert not world.running.flusher.closed_buckets()
    world.check_all_found()


class Watched(World):
    """A world whose shard counts the outcomes of its calls to the store, as a shard's process does."""

    health: StoreHealth

    def parts(self, home: MemoryStorage | None = None) -> ShardParts:
        parts = super().parts(home)
        return replace(parts, store=watched(parts.store, self.health), store_health=self.health)

    def readiness(self) -> int:
        """The status of `/-/ready` of a node with this shard."""
        report = report_of(LiveWorld(self))  # type: ignore[arg-type]
        status = ShardProcessStatus(0, ProcessState.RUNNING, report=report)

        class Node:
            def shards(self) -> tuple[ShardProcessStatus, ...]:
                return (status,)

            def partitions(self) -> int:
                return 1

        async def ready_status() -> int:
            async with served(health_routes(Node())) as serving:
                return (await serving.get("/-/ready")).status

        return in_loop(ready_status())

    def pass_seconds(self, seconds: int) -> None:
        """Let time pass for a shard's two threads: each does what is due, second by second."""
        for _ in range(seconds):
            self.pass_time(1_000)
            self.running.step()
            while self.running.flusher.step() == 0:
                pass


def test_49_everything_is_stored_seconds_after_an_outage_of_ten_minutes(folder: Path) -> None:
    with closing(Watched(folder, groups=4, flush=FlushTiming(spread=0.0))) as world:
        world.health = StoreHealth("Cassandra", world.clock)
        world.start()
        produce_everywhere(world)
        world.settle()
        # The bucket closes a minute after the outage begins.
        world.pass_seconds(49 * 60 + GRACE // 1_000)
        produce_everywhere(world, "b")
        world.pass_seconds(1)
        assert world.readiness() == 200
        world.store.before = store_is_away
        world.pass_seconds(40)
        assert world.readiness() == 503
        world.pass_seconds(40)
        produce_everywhere(world, "closes the bucket")
        world.pass_seconds(10 * 60 - 80)
        assert world.readiness() == 503
        assert len(world.running.flusher.closed_buckets()) == 1
        assert world.is_active(), "it still reads and answers from memory"
        world.store.before = no_fault
        world.pass_seconds(15)
        assert not world.running.flusher.closed_buckets()
        assert world.readiness() == 200
        world.check_all_found()


def test_reading_waits_for_the_store_instead_of_filling_the_disk(make_world: Callable[..., World]) -> None:
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
    assert world.status.lag == len(world.produced) - read, "and reports its lag"
    assert world.running.memory.spill.used < 40_000
    world.store.before = no_fault
    world.pass_time(MINUTE)
    while world.running.position < len(world.produced):
        world.running.step()
        world.running.flusher.step()
    world.settle()
    world.check_stored_once()


def test_a_replay_pauses_reading_while_many_buckets_wait(make_world: Callable[..., World]) -> None:
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


def test_reading_does_not_wait_for_the_flush_spread(
    make_world: Callable[..., World],
) -> None:
    """The store is healthy and idle; the data on disk only waits for its slot in the flush spread."""
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
    """The open bucket fills the disk, and only polling can close it."""
    world = make_world(buffer_bytes=1, spill_bytes=40_000, seal_rows=16, poll_records=64)
    world.start()
    produce_everywhere(world)
    world.read_all()
    world.store.before = group_fails(other_group(world))
    world.pass_hours(1)  # Some hundred bytes of one group wait.
    for n in range(150):
        produce_everywhere(world, str(n))
        world.running.step()
    world.pass_time(HOUR)
    produce_everywhere(world, "closes the bucket")
    for _ in range(20):
        world.running.step()
        world.running.flusher.step()
        world.pass_time(MINUTE)
    assert world.running.position == len(world.produced), "it waits for a cut that requires reading"
