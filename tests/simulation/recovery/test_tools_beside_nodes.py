"""Scenario 28: a command that catches up a shard, and the node that owns the shard."""

from dataclasses import replace
from pathlib import Path

import pytest

from strandline.node.shard.options import ReplayMode
from strandline.node.shard.ownership import StillOwned
from strandline.node.shard.shard import Shard
from strandline.node.shard.status import Status
from strandline.store.protocol import Fenced
from support.shard_world import HOUR, World, produce_everywhere

pytestmark = pytest.mark.simulation
MODES = (ReplayMode.DIRECT, ReplayMode.SPARK)


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.start()
    produce_everywhere(world)
    world.pass_hours(1)
    return world


def tool_on(world: World, *, take: bool = False) -> Shard:
    parts = replace(world.parts(), log=world.log.another_reader(), processes=world.machine.process())
    return Shard.start(parts, Status(), take=take, reads_tail=False)


def catch_up(world: World, tool: Shard) -> None:
    for _ in range(60):
        world.work()
        world.pass_time(1_000)
        tool.step()
        tool.flusher.step()
        if tool.is_fully_stored:
            return
    pytest.fail("the tool does not come to its end")


@pytest.mark.parametrize("mode", MODES)
def test_a_tool_is_refused_while_the_node_is_alive(world: World, mode: ReplayMode) -> None:
    world.replay_by(mode)
    before = world.sqlite.state(world.options.shard)
    with pytest.raises(StillOwned, match="shard metrics/0 has a live owner: process 2 on here"):
        tool_on(world)
    assert world.sqlite.state(world.options.shard) == before, "the node is not affected"
    produce_everywhere(world, "b")
    world.pass_hours(1)
    world.check_all_found()


@pytest.mark.parametrize("mode", MODES)
def test_a_tool_that_takes_the_shard_by_force_fences_the_node(world: World, mode: ReplayMode) -> None:
    world.replay_by(mode)
    produce_everywhere(world, "b")
    world.pass_time(2 * HOUR)
    # The node has read and cut it, but has not stored it.
    world.running.step()
    tool = tool_on(world, take=True)
    with pytest.raises(Fenced):
        world.store_due()
    world.crash()
    catch_up(world, tool)
    tool.close()
    world.start()
    for _ in range(3):
        world.work()
        world.pass_time(1_000)
        world.settle()
    world.check_all_found()


@pytest.mark.parametrize("mode", MODES)
def test_a_node_that_starts_while_a_tool_works_waits_or_fences_it_and_repeats_no_job(
    world: World, mode: ReplayMode
) -> None:
    world.crash()
    produce_everywhere(world, "b")
    world.pass_time(HOUR)
    produce_everywhere(world, "c")
    world.pass_time(2 * HOUR)
    world.replay_by(mode)
    tool = tool_on(world)
    world.work(waves=1)
    done = {job.bucket: job.epoch for job in world.sqlite.jobs(world.options.shard)}
    with pytest.raises(StillOwned, match="has a live owner"):
        world.start()
    node = world.start(take=True)

    def continue_tool() -> None:
        for _ in range(60):
            tool.step()
            tool.flusher.step()
            world.pass_time(1_000)

    with pytest.raises(Fenced):
        continue_tool()
    after = {job.bucket: job.epoch for job in world.sqlite.jobs(world.options.shard)}
    assert after.items() <= done.items(), "the jobs of the tool's workers do not run again"
    world.shard = node
    for _ in range(6):
        world.work()
        world.pass_time(1_000)
        world.settle()
    assert world.is_active()
    world.check_all_found()
