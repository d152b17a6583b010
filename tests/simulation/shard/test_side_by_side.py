"""Concurrency: steps of different threads at the same time, and what a shard reports while it waits."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from strandline.node.shard.index_storage import MemoryStorage
from strandline.node.shard.log import Records
from strandline.node.shard.ownership import take_shard
from strandline.node.shard.shard import Shard
from strandline.node.shard.status import Phase, Status
from strandline.recovery.offset_policy import Accepted
from strandline.store.buffer import write_buffer
from strandline.store.buffer.page import Page
from strandline.store.protocol import Fenced
from support.shard_world import (
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


def test_a_bucket_can_be_closed_in_a_replay_while_its_pages_are_merged(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The storing thread selects pages to merge. The reading thread freezes the bucket, and releases the groups that
    are stored already.
    """
    world.start()
    produce_everywhere(world)
    world.store.before = group_fails(other_group(world))
    world.pass_hours(1)
    world.crash()
    world.start()
    buffer, right = world.running.buffer, write_buffer.next_merge

    def release_groups(pages: Sequence[Page]) -> tuple[Page, ...]:
        monkeypatch.setattr(write_buffer, "next_merge", right)
        world.read_all()  # The other thread's step between two groups.
        return right(pages)

    monkeypatch.setattr(write_buffer, "next_merge", release_groups)
    assert buffer.maintain() is False


class CountingHome(MemoryStorage):
    def __init__(self) -> None:
        self.refreshed = 0
        self.may_merge = False

    def refresh(self, *, changed: bool, may_merge: bool = False) -> None:  # noqa: ARG002 - as the protocol has it
        self.refreshed += 1
        self.may_merge = may_merge


def started_with(world: World, home: MemoryStorage) -> Shard:
    parts = world.parts(home)
    world.status = Status()
    world.shard = Shard.start(parts, world.status, accepted=Accepted())
    return world.shard


def test_searches_find_new_keys_even_if_kafka_becomes_unreachable_right_after_them(world: World) -> None:
    home = CountingHome()
    shard = started_with(world, home)
    produce_everywhere(world)
    shard.step()
    before = home.refreshed
    world.log.reachable = False
    for _ in range(10):
        world.pass_time(MINUTE)
        shard.step()
    assert home.refreshed > before, "keys of the last batch stay invisible as long as Kafka is unreachable"


def test_documents_are_merged_once_a_shard_is_active(world: World) -> None:
    for _ in range(300):
        produce_everywhere(world)
    home = CountingHome()
    shard = started_with(world, home)
    shard.step()
    assert (world.status.phase, home.may_merge) == (Phase.CATCHING_UP, False)
    world.settle()
    shard.step()
    assert (world.status.phase, home.may_merge) == (Phase.ACTIVE, True)


def test_a_shard_that_catches_up_reports_its_lag(world: World) -> None:
    for _ in range(300):
        produce_everywhere(world)
        world.pass_time(1_000)
    world.start()
    for _ in range(50):
        world.pass_time(2_000)
        world.running.step()
    assert world.status.phase is Phase.CATCHING_UP
    assert world.status.lag is not None


def test_the_lag_of_an_active_shard_is_current(world: World) -> None:
    world.start()
    produce_everywhere(world)
    world.settle()
    assert world.is_active()
    for _ in range(300):
        produce_everywhere(world)
    for _ in range(3):
        world.pass_time(6_000)
        world.running.step()
    assert world.status.lag, "hundreds of records are unread"


def test_an_outdated_lag_does_not_make_a_shard_active(world: World) -> None:
    world.start()
    produce_everywhere(world)
    stuck = other_group(world)
    world.store.before = group_fails(stuck)
    world.pass_hours(2)
    world.crash()
    world.start()
    world.store.before = group_fails(stuck)
    world.settle()
    assert (world.status.phase, world.status.lag) == (Phase.CATCHING_UP, 0)
    world.log.reachable = False
    for hour in range(3):
        produce_everywhere(world, str(hour))
        world.pass_time(HOUR)
        world.running.step()
    world.store.before = no_fault
    while world.running.flusher.step() == 0:
        pass
    world.running.step()
    assert not world.is_active(), "its lag is unknown, and in fact three hours"


def test_an_outage_of_kafka_is_not_logged_at_every_poll(world: World) -> None:
    world.start()
    world.log.reachable = False
    with capture_logs() as lines:
        for _ in range(1200):  # Ten minutes of polls that wait half a second each.
            world.pass_time(500)
            world.running.step()
    assert len(lines) < 60, f"{len(lines)} lines in ten minutes"


def test_a_start_is_active_before_an_idle_bucket_that_it_closes_is_stored(world: World) -> None:
    """The buckets of the plan have to be stored; an idle bucket is not one of them."""
    world.start()
    produce_everywhere(world)
    world.pass_hours(2)
    world.crash()
    world.pass_time(HOUR)
    world.start()
    world.store.before = group_fails(other_group(world))
    world.settle()
    assert world.running.flusher.closed_buckets()
    assert world.is_active()


def test_a_start_waits_for_the_last_records_even_if_the_first_fetch_is_slow(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first fetch takes longer than the poll of a start without remaining records."""
    world.start()
    produce_everywhere(world)
    world.settle()
    world.crash()
    produce_everywhere(world, "b")
    polled, waited = world.log.poll, []

    def slow(most: int, timeout: float) -> Records:
        waited.append(timeout)
        return polled(most, timeout) if len(waited) > 1 else Records.none(world.running.position)

    world.options = replace(world.options, active_lag=1000)
    shard = world.start()
    monkeypatch.setattr(world.log, "poll", slow)
    shard.step()
    assert not world.is_active()
    shard.step()
    assert waited[1] == world.options.poll_timeout_s, "later polls wait as usual"
    world.settle()
    assert world.is_active()
    assert {name for _, name in world.found()} == {"a", "b"}


def test_a_start_that_was_fenced_reports_the_fencing_and_no_loss(world: World) -> None:
    """The start stalled with an old manifest, while another owner stored records that Kafka has deleted since."""
    world.start()
    produce_everywhere(world)
    world.crash()
    world.pass_time(HOUR)
    world.log.delete_before(1)
    other = world.machine.process()

    def taken(call: StoreCall) -> None:
        if call.name == "manifest":
            take_shard(world.sqlite, world.options.shard, "topic-1", world.clock, other, by_force=True)

    world.store.after = taken
    with pytest.raises(Fenced):
        world.start()
