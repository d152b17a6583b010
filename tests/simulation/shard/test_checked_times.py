"""Acknowledged samples are kept regardless of the record time that the broker assigned."""

from collections.abc import Callable

import pytest

from strandline.index.sample_limits import SampleLimits
from strandline.node.shard.options import ReplayMode
from strandline.wire.snappy import compress
from support.shard_world import HOUR, METRICS, MINUTE, World

pytestmark = pytest.mark.simulation

LIMITS = SampleLimits(behind=HOUR, ahead=10 * MINUTE)
SLOW = 15 * MINUTE


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world(sample_limits=LIMITS)


def acknowledge(world: World, name: str, late: int = SLOW) -> None:
    """Current samples that a gateway has checked, in a record of a leader whose clock is slow."""
    now = world.clock.now_ms()
    world.produce(*((metric, name, now, 1.0) for metric in METRICS), late=late, times_checked=True)


def without_time(world: World, name: str) -> None:
    """Current samples that were not checked, in a record without a time."""
    now = world.clock.now_ms()
    world.produce(*((metric, name, now, 2.0) for metric in METRICS), late=now + 1)


def check_nothing_is_dropped(world: World) -> None:
    counters = world.status.counters
    assert (counters.too_old, counters.too_far_ahead) == (0, 0)
    world.check_all_found()


def test_40_acknowledged_samples_are_kept_with_a_slow_leader_clock_or_without_a_record_time(
    world: World,
) -> None:
    world.start()
    for hour in range(3):
        acknowledge(world, f"checked-{hour}")
        without_time(world, f"no-time-{hour}")
        world.pass_hours(1)
    assert world.status.counters.cuts == 3, "buckets still close"
    check_nothing_is_dropped(world)
    acknowledge(world, "open")
    world.settle()
    check_nothing_is_dropped(world)


@pytest.mark.parametrize("mode", [ReplayMode.DIRECT, ReplayMode.SPARK])
def test_40_a_replay_keeps_the_same_samples_of_a_slow_leader_as_live_ingestion(world: World, mode: ReplayMode) -> None:
    world.start()
    acknowledge(world, "stored")
    world.pass_hours(1)
    world.crash()
    for hour in range(2):
        acknowledge(world, f"checked-{hour}")
        without_time(world, f"no-time-{hour}")
        world.pass_time(HOUR)
    acknowledge(world, "tail")
    world.replay_by(mode)
    world.start()
    for _ in range(20):
        world.work()
        world.pass_time(1_000)
        world.settle()
    assert world.is_active()
    assert (world.replays.wanted > 0) is (mode is ReplayMode.SPARK)
    check_nothing_is_dropped(world)


def test_unchecked_samples_are_still_limited(world: World) -> None:
    world.start()
    now = world.clock.now_ms()
    world.produce(("m", "ahead", now, 1.0), late=SLOW)
    world.produce(("m", "old", now - 2 * HOUR, 1.0))
    world.produce(("m", "kept", now, 1.0))
    world.settle()
    counters = world.status.counters
    assert (counters.too_old, counters.too_far_ahead) == (1, 1)
    assert world.found() == {("m", "kept"): {now: 1.0}}


def test_an_empty_record_by_which_a_gateway_compares_clocks_is_ignored_by_a_shard(world: World) -> None:
    world.start()
    world.log.append(compress(b""), world.clock.now_ms(), times_checked=True)
    acknowledge(world, "after")
    world.pass_hours(1)
    assert (world.status.counters.records, world.status.counters.dead_letters) == (2, 0)
    check_nothing_is_dropped(world)
