"""Jumps of wall clocks do not affect what a shard does on its own schedule."""

from collections.abc import Callable

import pytest

from strandline.clock import ManualClock
from strandline.node.shard.status import Phase
from strandline.recovery.checkpoints import designated_group
from strandline.store.protocol import StoreUnavailable
from strandline.store.rows import ShardId
from strandline.store.sqlite import open_sqlite_store
from support.shard_world import (
    GRACE,
    HOUR,
    MINUTE,
    FaultyStore,
    StoreCall,
    World,
    group_fails,
    no_fault,
    other_group,
    produce_everywhere,
)
from support.verifying import assert_world_sound

pytestmark = pytest.mark.simulation


class JumpingClock(ManualClock):
    """A clock whose wall time may jump, but not its monotonic time."""

    offset = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.offset


@pytest.fixture
def jumping(make_world: Callable[..., World]) -> World:
    return with_jumping_clock(make_world())


def with_jumping_clock(world: World) -> World:
    clock = JumpingClock(world.clock.now_ms())
    world.clock = clock
    world.sqlite.close()
    world.sqlite = open_sqlite_store(world.options.folder / "store.sqlite", clock)
    world.store = FaultyStore(world.sqlite)
    return world


def test_an_owner_continues_its_heartbeats_after_the_clock_went_back(jumping: World) -> None:
    world = jumping
    world.start()
    world.clock.offset = -HOUR
    touched = 0

    def count(call: StoreCall) -> None:
        nonlocal touched
        touched += call.name == "touch"

    world.store.before = count
    for _ in range(30):
        world.pass_time(MINUTE)
        world.running.flusher.step()
    assert touched >= 29, f"{touched} times in half an hour"


def test_a_failed_group_is_retried_soon_after_the_clock_went_back(jumping: World) -> None:
    world = jumping
    world.start()
    produce_everywhere(world)
    world.read_all()
    world.pass_time(HOUR + GRACE)
    world.running.step()

    def fails(call: StoreCall) -> None:
        if call.name == "write_segments":
            raise StoreUnavailable("for a moment")

    world.store.before = fails
    while world.running.flusher.step() == 0:
        pass
    world.store.before = no_fault
    world.clock.offset = -HOUR
    for _ in range(10):
        world.pass_time(MINUTE)
        while world.running.flusher.step() == 0:
            pass
    assert not world.running.flusher.closed_buckets(), "nothing was retried for ten minutes"


def test_a_shard_that_caught_up_is_active_after_the_clock_went_back(jumping: World) -> None:
    world = jumping
    produce_everywhere(world)
    world.start()
    world.running.step()
    world.status.phase = Phase.CATCHING_UP
    world.clock.offset = -HOUR
    for _ in range(60):  # Ten minutes with one record per poll.
        world.pass_time(10_000)
        produce_everywhere(world)
        world.running.step()
    assert world.is_active()


def test_cuts_expire_in_the_order_of_their_buckets_despite_clock_jumps(jumping: World) -> None:
    world = jumping
    world.start()

    def no_commit(call: StoreCall) -> None:
        if call.name == "commit":
            raise StoreUnavailable("no answer")

    world.store.before = no_commit
    produce_everywhere(world)
    world.read_all()
    world.pass_time(HOUR + GRACE)
    world.running.step()
    world.clock.offset = -3 * HOUR
    # The brokers' clock did not jump: the next record closes the next bucket.
    world.pass_time(HOUR)
    world.produce(("m", "x", world.clock.now_ms() + 3 * HOUR, 1.0), late=-3 * HOUR)
    world.read_all()
    world.store.before = no_fault
    world.pass_time(2 * HOUR)
    world.clock.offset = 0
    for _ in range(50):
        world.running.flusher.step()
    cuts = sorted(world.manifest().cuts, key=lambda cut: cut.bucket)
    expiries = [cut.expires for cut in cuts]
    assert expiries == sorted(expiries), "a newer row would expire first and leave a hole in the manifest"


def test_a_clock_that_is_briefly_far_ahead_purges_no_key(jumping: World) -> None:
    world = jumping
    world.start()
    produce_everywhere(world)
    world.pass_hours(1)
    keys = world.keys()
    world.clock.offset = 240 * HOUR
    world.running.step()  # One poll without records.
    world.clock.offset = 0
    world.settle()
    assert set(world.keys()) == set(keys)


def test_a_corrected_clock_is_believed_after_ten_minutes(jumping: World) -> None:
    world = jumping
    world.start()
    produce_everywhere(world)
    world.read_all()
    world.clock.offset = 3 * HOUR
    for _ in range(8):
        world.pass_time(MINUTE)
        world.running.step()
    assert world.status.counters.cuts == 0
    for _ in range(8):
        world.pass_time(MINUTE)
        world.running.step()
    assert world.status.counters.cuts == 3


def test_a_clock_set_back_between_a_group_s_data_and_its_row_causes_no_finding(
    make_world: Callable[..., World],
) -> None:
    """A row created from two readings would expire before the data that it references. The clock is set back slightly
    each time, because larger steps are not believed immediately.
    """
    world = with_jumping_clock(make_world(history=0))
    world.start()
    is_away = False

    def fail_while_away(call: StoreCall) -> None:
        if is_away and call.writes_group is not None:
            raise StoreUnavailable("no answer")

    def set_back(call: StoreCall) -> None:
        if call.name in {"write_segments", "write_index_bucket"}:
            world.clock.offset -= MINUTE // 2

    world.store.before, world.store.after = fail_while_away, set_back
    for _ in range(3):
        produce_everywhere(world)
        is_away = True
        world.pass_hours(2)
        # Rows that were committed with the cuts would hide the fault: a row never expires before an older one.
        world.pass_time(10 * MINUTE)
        is_away = False
        world.settle()
    assert world.clock.offset < 0
    rows = world.manifest().groups
    assert rows
    policy = world.options.policy
    assert {row.data_expires - row.written_at for row in rows} >= {policy.time_to_live}
    assert_world_sound(world)


def test_data_stored_by_a_clock_that_is_hours_behind_has_the_right_lifetime(jumping: World) -> None:
    """Scenario 38, for a node that starts with such a clock when a bucket is cut and not stored. A step back while the
    node runs is not believed immediately.
    """
    world = jumping
    world.start()
    produce_everywhere(world)
    world.store.before = group_fails(other_group(world))
    world.pass_hours(2)
    before = len(world.manifest().groups)
    world.crash()
    world.clock.offset = -10 * HOUR
    world.start()
    world.settle()
    options, rows = world.options, world.manifest()
    assert len(rows.groups) > before
    for row in rows.groups:
        end = (row.bucket + 1) * options.policy.flush_interval
        assert row.data_expires >= end + options.policy.time_to_live
        assert row.expires >= end + options.row_lifetime
    for cut in rows.cuts:
        assert cut.expires >= (cut.bucket + 1) * options.policy.flush_interval + options.row_lifetime or cut.reset


def test_each_heartbeat_raises_a_counter_even_while_the_clock_is_stopped(jumping: World) -> None:
    world = jumping
    world.start()
    produce_everywhere(world)
    world.pass_hours(2)
    world.crash()
    seen: list[int] = []

    def note(call: StoreCall) -> None:
        if call.name == "touch":
            state = world.sqlite.state(world.options.shard)
            assert state is not None
            seen.append(state.beats)
        if call.name == "index_bucket":  # Loading the index takes minutes.
            world.pass_time(MINUTE)
            world.clock.offset -= MINUTE

    world.store.after = note
    world.start()
    loaded = len(seen)
    for _ in range(5):
        world.pass_time(MINUTE)
        world.clock.offset -= MINUTE
        world.running.flusher.step()
    assert loaded
    assert seen == list(range(1, loaded + 6)), "the counter restarts after the load"


def test_index_buckets_of_many_shards_are_written_at_different_times(make_world: Callable[..., World]) -> None:
    first_written = set()
    for number in range(12):
        world = make_world(shard=ShardId("metrics", number), partitions=12, groups=16)
        world.start()
        world.read_all()
        world.pass_time(HOUR + GRACE)
        world.running.step()
        order: list[int] = []

        def note(call: StoreCall, order: list[int] = order) -> None:
            if call.writes_group is not None:
                order.append(call.writes_group)

        world.store.before = note
        world.store_due()
        first_written.add(order.index(designated_group(world.options.shard, 16)))
    assert len(first_written) > 4, f"the index bucket is piece {first_written} in all shards"
