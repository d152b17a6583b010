"""Starts that break a naive shard. Each states an invariant, and fails without the rule that ensures it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from strandline.errors import ExitCode
from strandline.node.shard.flusher import HEARTBEAT_MS
from strandline.node.shard.options import ReplayMode
from strandline.node.shard.ownership import AnotherShape
from strandline.node.shard.status import Phase
from strandline.recovery.offset_policy import Accepted, DataLost, FirstStart, LogMismatch, StartAt
from strandline.store.protocol import Fenced
from strandline.time_range import TimeRange
from support.shard_world import (
    GRACE,
    HOUR,
    METRICS,
    MINUTE,
    POLICY,
    START,
    Crash,
    StoreCall,
    World,
    group_fails,
    no_fault,
    other_group,
    produce_everywhere,
)

pytestmark = pytest.mark.simulation


def test_09_no_live_key_expires_during_the_longest_downtime_that_kafka_allows(world: World) -> None:
    world.start()
    kafka_keeps = POLICY.margin - 2 * HOUR
    for _ in range(2 * POLICY.time_to_live // HOUR):
        world.produce(("m", "always", world.clock.now_ms(), 1.0))
        world.pass_hours(1)
    started = world.keys()["m", "always"][0]
    assert started == START, "it has outlived every bucket"
    world.crash()
    world.pass_time(kafka_keeps)
    world.start()
    assert world.keys()["m", "always"][0] == START
    world.settle()
    assert world.keys()["m", "always"][0] == START


@pytest.mark.parametrize("first", [2, 20])
def test_10_no_live_key_is_lost_by_repeated_changes_of_the_retention(world: World, first: int) -> None:
    right = world.options
    policies = [replace(POLICY, retention=hours * HOUR) for hours in (first, 5, 22 - first, 5)]
    for policy in policies:
        world.options = replace(right, policy=policy, history=48 * HOUR)
        world.start()
        for _ in range(12):
            world.produce(("m", "always", world.clock.now_ms(), 1.0))
            world.pass_hours(1)
        world.crash()
    world.start()
    assert world.keys()["m", "always"][0] == START


def test_a_shard_whose_first_rows_have_all_expired_starts_again(make_world: Callable[..., World]) -> None:
    world = make_world(history=0)
    world.start()
    for _ in range(30):
        produce_everywhere(world)
        world.pass_hours(1)
    assert min(cut.bucket for cut in world.manifest().cuts) > START // HOUR, "the first rows are gone"
    keys, found = world.keys(), world.found(TimeRange(world.clock.now_ms() - POLICY.retention, world.clock.now_ms()))
    world.crash()
    world.start()
    assert world.keys() == keys
    assert world.found(TimeRange(world.clock.now_ms() - POLICY.retention, world.clock.now_ms())) == found


def test_11_and_12_a_first_start_at_the_end_gives_the_same_result_after_a_crash(
    make_world: Callable[..., World],
) -> None:
    for rows_before_crash in (0, 2):
        world = make_world(first_start=FirstStart(StartAt.LATEST))
        produce_everywhere(world, "before")
        not_wanted = len(world.produced)
        world.start()
        produce_everywhere(world, "after")
        world.read_all()
        world.pass_time(HOUR + GRACE)
        world.running.step()
        while len(world.manifest().groups) < rows_before_crash:
            world.running.flusher.step()
        world.crash()
        produce_everywhere(world, "later")
        world.start()
        world.pass_hours(1)
        assert world.manifest().cuts[-1].start == not_wanted
        del world.produced[:not_wanted]
        world.check_all_found()


def test_13_a_loss_within_a_bucket_is_recorded_and_stored_groups_lose_nothing(world: World) -> None:
    world.start()
    produce_everywhere(world, "1")
    produce_everywhere(world, "2")
    produce_everywhere(world, "3")
    stuck = other_group(world)
    world.store.before = group_fails(stuck)
    world.pass_hours(1)
    stored = world.manifest().groups
    world.crash()
    world.log.delete_before(2)
    with pytest.raises(DataLost, match=r"offset 0 up to 2") as caught:
        world.start()
    assert caught.value.exit_code == ExitCode.DATA_LOST
    assert world.manifest().cuts[0].lost_to is None, "nothing is accepted automatically"
    world.start(accepted=Accepted(loss_to=2))
    world.settle()
    cut = world.manifest().cuts[0]
    assert (cut.start, cut.lost_to, cut.end) == (0, 2, 3)
    assert set(world.manifest().groups) > set(stored)
    late = world.rows(cut.bucket)[stuck]
    found = world.found()
    for metric in METRICS:
        kept = {name for (key, name) in found if key == metric}
        assert kept in ({"1", "2", "3"}, {"3"})
    assert {"1", "2", "3"} in [{name for (key, name) in found if key == metric} for metric in METRICS]
    assert late.samples == sum(1 for (_, name) in found if name == "3") - sum(
        1 for (_, name) in found if name == "1"
    ), "the stuck group has the remaining records"


def test_13_a_loss_over_several_buckets_is_recorded_with_each_bucket(world: World) -> None:
    world.start()
    world.store.before = group_fails(other_group(world))
    for name in "123":
        produce_everywhere(world, name)
        world.pass_hours(1)
    world.crash()
    world.log.delete_before(2)
    world.start(accepted=Accepted(loss_to=2))
    cuts = sorted((cut.start, cut.lost_to, cut.end) for cut in world.manifest().cuts if not cut.reset)
    assert cuts == [(0, 1, 1), (1, 2, 2), (2, None, 3)]


@pytest.mark.parametrize(
    ("reads_tail", "mode"),
    [(True, ReplayMode.AUTO), (False, ReplayMode.DIRECT), (False, ReplayMode.SPARK)],
    ids=["node", "recover-run-direct", "recover-run-spark"],
)
def test_45_a_loss_after_the_last_cut_is_recorded_before_anything_is_read(
    world: World, reads_tail: bool, mode: ReplayMode
) -> None:
    world.replay_by(mode)
    world.start()
    produce_everywhere(world, "1")
    produce_everywhere(world, "2")
    world.read_all()
    world.crash()
    world.log.delete_before(1)
    world.start(accepted=Accepted(loss_to=1), reads_tail=reads_tail)
    cut = world.manifest().cuts[0]
    assert (cut.start, cut.lost_to, cut.end) == (0, 1, 1)
    world.crash()
    world.start()
    world.pass_hours(2)
    cut = world.manifest().cuts[0]
    assert (cut.start, cut.lost_to, cut.end) == (1, None, 2)
    assert {name for _, name in world.found()} == {"2"}
    assert world.is_active()


def test_21_a_different_flush_interval_or_number_of_groups_is_refused_and_named(world: World) -> None:
    world.start()
    world.crash()
    right = world.options
    world.options = replace(right, groups=8)
    with pytest.raises(AnotherShape, match=r"dataset.groups = 4, which can't be changed to 8"):
        world.start()
    world.options = replace(right, policy=replace(POLICY, flush_interval=HOUR // 2))
    with pytest.raises(
        AnotherShape, match=r"dataset.flush_interval = 3600000 ms, which can't be changed to 1800000 ms"
    ):
        world.start()
    world.options = right
    world.start()


def test_23_a_partition_that_was_added_later_is_read_from_its_start(make_world: Callable[..., World]) -> None:
    world = make_world(first_start=FirstStart(StartAt.LATEST))
    world.sqlite.create_dataset(replace(world.options.shape, partitions=0))
    produce_everywhere(world, "before")
    world.start()
    world.settle()
    world.check_all_found()


def test_32_a_recreated_topic_is_read_once_an_operator_accepts_it(world: World) -> None:
    world.start()
    produce_everywhere(world, "old")
    world.pass_hours(2)
    old = world.found()
    world.crash()
    world.log.recreate()
    del world.produced[:]
    produce_everywhere(world, "new")
    with pytest.raises(LogMismatch, match="is another topic"):
        world.start()
    world.start(accepted=Accepted(another_topic=True))
    world.pass_hours(2)
    found = world.found()
    assert {name: samples for name, samples in found.items() if name[1] == "old"} == old, "old data stays readable"
    assert {name: samples for name, samples in found.items() if name[1] == "new"} == world.expected()
    newest = world.manifest().cuts[0]
    assert (newest.start, newest.end) == (0, 1)
    world.crash()
    world.start()
    assert world.found() == found


def test_33_a_shard_is_not_active_while_a_row_of_the_replay_is_uncommitted(world: World) -> None:
    world.start()
    produce_everywhere(world)
    stuck = other_group(world)
    world.store.before = group_fails(stuck)
    world.pass_hours(2)
    world.crash()
    world.start()
    world.store.before = group_fails(stuck)
    world.settle()
    assert world.status.phase is Phase.CATCHING_UP
    assert world.status.lag == 0
    world.store.before = no_fault
    world.pass_time(MINUTE)
    world.settle()
    assert world.is_active()


def test_a_replay_buffers_no_sample_of_a_stored_group(world: World) -> None:
    world.start()
    for name in "abcdef":
        produce_everywhere(world, name)
    stuck = other_group(world)
    world.store.before = group_fails(stuck)
    world.pass_hours(1)
    world.crash()
    world.start()
    half = world.running.step()
    kept = world.running.buffer.status().samples
    bucket = world.running.bucket
    world.settle()
    assert half == 3
    assert 2 * kept == world.rows(bucket)[stuck].samples < 6 * len(METRICS)


def test_a_fenced_owner_writes_nothing_more(world: World) -> None:
    first = world.start()
    produce_everywhere(world)
    world.read_all()
    world.pass_time(HOUR + GRACE)
    first.step()
    world.start(take=True)
    before = world.manifest()
    with pytest.raises(Fenced):
        first.flusher.step()
    assert world.manifest() == before
    world.settle()
    world.check_all_found()


def test_a_fenced_owner_with_nothing_to_store_notices_at_its_next_heartbeat(world: World) -> None:
    first = world.start()
    world.start(take=True)
    world.pass_time(HEARTBEAT_MS)
    with pytest.raises(Fenced):
        first.flusher.step()


def test_a_crash_at_any_call_to_the_store_loses_and_duplicates_nothing(make_world: Callable[..., World]) -> None:
    """Before and after each call: during a first hour, a second, and the following restart."""
    calls = 0
    for crash_at in range(10_000):
        world = make_world()
        seen = 0

        def count(_call: StoreCall, crash_at: int = crash_at) -> None:
            nonlocal seen
            if seen == crash_at:
                raise Crash
            seen += 1

        world.store.before = world.store.after = count
        crashed = False
        for hour in range(3):
            try:
                if world.shard is None:
                    world.start()
                produce_everywhere(world, str(hour))
                world.pass_hours(1)
            except Crash:
                crashed = True
                world.crash()
                world.start()
        world.store.before = world.store.after = no_fault
        world.settle()
        world.check_all_found()
        assert all(len(world.rows(cut.bucket)) == 4 for cut in world.manifest().cuts[:-1])
        if not crashed:
            break
        calls += 1
    assert calls > 60, "there are more calls than that"
