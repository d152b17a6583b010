"""Logs that are truncated, recreated, or deleted by retention while a shard runs or is down."""

import threading
from dataclasses import replace

import pytest

from strandline.node.shard.log import LogEnds, OffsetGone, Records, TopicUnfit
from strandline.node.shard.memory_log import MemoryEndsRequest
from strandline.node.shard.running import RunningShard
from strandline.node.shard.shard import Shard
from strandline.node.shard.status import Phase
from strandline.recovery.offset_policy import Accepted, LogMismatch
from support.shard_world import GRACE, HOUR, StoreCall, World, group_fails, no_fault, other_group, produce_everywhere

pytestmark = pytest.mark.simulation


@pytest.fixture
def one_at_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> threading.Lock:
    """Held while the shard reads: a holder changes the log between two polls, never during one."""
    held, polled = threading.Lock(), world.log.poll

    def poll(most: int, timeout: float) -> Records:
        with held:
            return polled(most, timeout)

    monkeypatch.setattr(world.log, "poll", poll)
    return held


def truncate_log(world: World, behind: int) -> None:
    """Truncate the log, as an unclean leader election does."""
    del world.log._partition.entries[behind:]


def test_a_log_that_ends_before_the_position_causes_no_cut(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recreated topic returns its ends immediately, but a reader notices the recreation only seconds later."""
    world.start()
    produce_everywhere(world)
    produce_everywhere(world)
    world.pass_hours(1)  # A bucket [0, 2) is stored.
    cuts = world.manifest().cuts
    world.pass_time(HOUR)
    # The recreated topic, between two checks of the topic watch.
    monkeypatch.setattr(MemoryEndsRequest, "answer", lambda _: LogEnds(0, 0, 0))
    monkeypatch.setattr(world.log, "poll", lambda *_: Records.none(2))  # The library does not report it yet.
    world.running.step()
    while world.running.flusher.step() == 0:
        pass
    assert world.manifest().cuts == cuts
    monkeypatch.undo()
    world.crash()
    world.start()
    assert all(cut.start <= cut.end for cut in world.manifest().cuts)


def test_a_log_truncated_below_a_cut_is_refused(world: World) -> None:
    world.start()
    for name in "abcd":
        produce_everywhere(world, name)
    world.store.before = group_fails(other_group(world))
    world.pass_hours(1)  # All groups but one are stored up to offset 4.
    world.crash()
    truncate_log(world, 2)
    with pytest.raises(LogMismatch, match="ends at offset 2, before 4"):
        world.start()


@pytest.mark.parametrize("what", ["recreated", "overtaken"])
def test_read_records_are_stored_after_the_log_has_lost_them(
    world: World, what: str, one_at_a_time: threading.Lock
) -> None:
    produce_everywhere(world, "1")
    world.pass_time(HOUR + GRACE)
    produce_everywhere(world, "2")
    world.options = replace(world.options, poll_records=2)

    def lose(call: StoreCall) -> None:
        """Both records are read and the first one's bucket is closed, but not stored, when the log is lost."""
        if call.name == "write_segments":
            world.store.before = no_fault
            with one_at_a_time:
                produce_everywhere(world, "3")
                if what == "recreated":
                    world.log.recreate()
                else:
                    world.log.delete_before(3)

    world.store.before = lose
    parts = world.parts()
    with pytest.raises((OffsetGone, TopicUnfit)):
        RunningShard(parts, accepted=Accepted()).run()
    world.store.before = no_fault
    world.log.close()
    world.start(accepted=Accepted(loss_to=3, another_topic=True))
    world.settle()
    assert "1" in {name for _, name in world.found()}, "only the shard still had it"


def test_a_loss_in_the_log_is_reported_before_the_next_step(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query in between would consider the shard complete."""
    produce_everywhere(world)
    running = RunningShard(world.parts(), accepted=Accepted())
    happened: list[str | Phase] = []
    running.after_step = lambda: happened.append(running.status.phase)
    polled, stepped = world.log.poll, Shard.step

    def step(shard: Shard) -> None:
        happened.append("step")
        stepped(shard)

    def poll(most: int, timeout: float) -> Records:
        if running.status.phase is Phase.ACTIVE:
            raise OffsetGone("it was deleted")
        return polled(most, timeout)

    monkeypatch.setattr(Shard, "step", step)
    monkeypatch.setattr(world.log, "poll", poll)
    with pytest.raises(OffsetGone):
        running.run()
    became_active = happened.index(Phase.ACTIVE)
    assert happened[became_active : became_active + 4] == [Phase.ACTIVE, "step", Phase.CATCHING_UP, "step"]


def test_an_accepted_loss_need_not_be_accepted_again_after_a_crash(world: World) -> None:
    world.start()
    for name in "123":
        produce_everywhere(world, name)
    stuck = other_group(world)
    world.store.before = group_fails(stuck)
    world.pass_hours(1)
    world.crash()
    world.log.delete_before(2)
    world.start(accepted=Accepted(loss_to=2))
    assert world.manifest().cuts[0].lost_to == 2
    world.crash()
    world.start()
    world.settle()
    assert world.is_active()


def test_the_open_bucket_is_stored_too_when_the_log_has_lost_its_records(
    world: World, one_at_a_time: threading.Lock
) -> None:
    produce_everywhere(world, "1")
    world.pass_time(HOUR + GRACE)
    produce_everywhere(world, "2")
    world.options = replace(world.options, poll_records=2)

    def lose(call: StoreCall) -> None:
        if call.name == "write_segments":
            world.store.before = no_fault
            with one_at_a_time:
                produce_everywhere(world, "3")
                produce_everywhere(world, "4")
                world.log.delete_before(3)

    world.store.before = lose
    parts = world.parts()
    with pytest.raises(OffsetGone):
        RunningShard(parts, accepted=Accepted()).run()
    world.store.before = no_fault
    world.log.close()
    world.start(accepted=Accepted(loss_to=3))
    world.settle()
    assert {name for _, name in world.found()} >= {"1", "2"}
