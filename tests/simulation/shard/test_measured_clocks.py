"""The differences between the clocks of node, store and brokers, as a shard measures them."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from strandline.recovery.present import describe_wrong_clocks
from support.clock_worlds import ClocksWorld
from support.shard_world import GRACE, HOUR, MINUTE, produce_everywhere

pytestmark = pytest.mark.simulation


@pytest.fixture
def world(folder: Path) -> Iterator[ClocksWorld]:
    with closing(ClocksWorld(folder)) as made:
        yield made


def test_clock_differences_are_reported(world: ClocksWorld) -> None:
    world.start()
    world.live_through(10)
    present = world.running.parts.present
    assert abs(present.readings().disagreement) < GRACE
    world.set_node_ahead(-2 * HOUR)
    world.pass_time(11 * MINUTE)
    present.now_ms()
    world.pass_time(11 * MINUTE)
    assert present.readings().differences["node"] == pytest.approx(-2 * HOUR, abs=MINUTE)


def seen_of_brokers(world: ClocksWorld) -> int:
    """The lead of the brokers' clock as measured by the shard, in milliseconds."""
    return world.running.parts.present.readings().differences["broker"]


def test_a_slow_broker_clock_is_measured_by_records_that_have_just_arrived(world: ClocksWorld) -> None:
    world.start()
    produce_everywhere(world)
    world.settle()
    for _ in range(10):
        world.pass_time(5_000)
        world.running.step()
    world.produce(("m", "right", world.clock.now_ms(), 1.0))
    world.read_all()
    assert seen_of_brokers(world) == 0
    world.pass_time(5_000)
    world.running.step()
    world.produce(("m", "slow", world.clock.now_ms(), 1.0), late=5 * MINUTE)
    world.read_all()
    assert -5 * MINUTE <= seen_of_brokers(world) <= -5 * MINUTE + 10_000
    words = describe_wrong_clocks(world.running.parts.present.readings().differences)
    assert words.startswith("the clock 'broker' is ")
    assert words.endswith(" s behind the others")


def test_records_that_have_waited_are_not_used_to_measure_the_broker_s_clock(world: ClocksWorld) -> None:
    world.start()
    produce_everywhere(world)
    world.settle()
    for _ in range(3):
        produce_everywhere(world, "waits")
        world.pass_time(20 * MINUTE)
    world.read_all()
    assert seen_of_brokers(world) == 0
    world.crash()
    produce_everywhere(world, "later")
    world.pass_time(HOUR)
    world.start()
    world.settle()
    assert seen_of_brokers(world) == 0
