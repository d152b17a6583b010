"""Rewinds in a world that continues: wherever a rewind is interrupted, every sample and every key exists once at the
end, and no id is used twice.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from strandline.index.sample_limits import SampleLimits
from strandline.node.shard.status import Phase
from strandline.recovery.checkpoints import designated_group, progress
from strandline.recovery.rewinding import RewindRefused, ToBucket, ToOffset, ToTime
from strandline.store.protocol import StoreUnavailable
from support.rewound_worlds import (
    buckets_with,
    check_stored_exactly_once,
    ids,
    let_expire,
    rewind_world,
    stop_shard,
    superseded,
    world_with_history,
)
from support.shard_world import (
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
from support.verifying import assert_world_sound

pytestmark = pytest.mark.simulation

FIRST = START // HOUR  # The bucket of the first record.
LASTING = replace(POLICY, retention=48 * HOUR)  # Nothing is purged within a test.


def test_a_rewound_shard_reads_again_from_the_cut_and_reaches_the_same_state(world: World) -> None:
    world_with_history(world)
    world.start()
    keys, before = world.keys(), ids(world)
    stop_shard(world)
    state = world.manifest().state
    plan = rewind_world(world, ToBucket(FIRST + 2))
    assert (plan.bucket, plan.last_bucket, plan.offset, plan.end) == (FIRST + 2, FIRST + 4, 4, 10)
    assert (plan.rows, plan.samples) == (3 * world.options.groups, 6 * len(METRICS))
    after = world.manifest()
    assert superseded(world) == {FIRST + 2, FIRST + 3, FIRST + 4}
    assert (after.state.seen_at, after.state.next_part_id) == (None, state.next_part_id)
    world.start()
    assert world.status.phase is Phase.REPLAYING
    assert world.running.position == 4
    check_stored_exactly_once(world)
    assert world.is_active()
    assert superseded(world) == set()
    assert world.keys() == keys
    assert ids(world) == before, "ids are stored with their keys, in superseded buckets too"
    world.crash()
    world.start()
    check_stored_exactly_once(world)
    assert world.keys() == keys


def test_a_rewind_to_a_time_begins_with_the_bucket_of_the_records_of_that_time(world: World) -> None:
    world_with_history(world)
    # Records within the grace belong to the previous bucket.
    assert rewind_world(world, ToTime((FIRST + 3) * HOUR)).bucket == FIRST + 2


def test_27_a_rewind_beyond_the_start_of_the_log_is_refused_without_changes(world: World) -> None:
    world_with_history(world)
    world.log.delete_before(5)
    before = world.manifest()
    for target in (ToBucket(FIRST + 2), ToOffset(4), ToTime(START)):
        with pytest.raises(RewindRefused, match="the log starts at offset 5") as caught:
            rewind_world(world, target)
        assert f"The oldest possible target is bucket {FIRST + 3}, offset 6" in caught.value.remedy
    after = world.manifest()
    assert (after.cuts, after.groups) == (before.cuts, before.groups)
    assert after.state.seen_at is None, "the next owner need not wait"
    del world.produced[:]
    world.start()
    world.settle()
    assert world.is_active()


def test_27_an_interrupted_rewind_equals_a_shorter_one(make_world: Callable[..., World]) -> None:
    """Interrupted at each of its batches, before or after the store has applied it."""
    groups = 4
    for whole_batches in range(4):
        for applied in (False, True):
            world, shorter = world_with_history(make_world()), world_with_history(make_world())
            left = whole_batches

            def hook(call: StoreCall) -> None:
                nonlocal left
                if call.name == "commit":
                    left -= 1
                    if left < 0:
                        raise Crash

            if applied:
                world.store.after = hook
            else:
                world.store.before = hook
            with suppress(Crash):
                rewind_world(world, ToBucket(FIRST + 1), most_rows=groups)
            world.store.before = world.store.after = no_fault
            done = min(4, whole_batches + applied)
            if done:
                rewind_world(shorter, ToBucket(FIRST + 5 - done))
            shard = world.options.shard
            found, wanted = (progress(each.manifest(), groups, shard) for each in (world, shorter))
            assert found is not None
            assert found == wanted, "it leaves the same holes as a rewind to a later cut"
            for each in (world, shorter):
                each.start()
                check_stored_exactly_once(each)
            assert world.keys() == shorter.keys()


def test_27_repeating_an_interrupted_rewind_completes_it(world: World) -> None:
    world_with_history(world)

    def fail(call: StoreCall) -> None:
        if call.name == "commit" and len(superseded(world)) == 2:
            raise StoreUnavailable("no answer")

    world.store.before = fail
    with pytest.raises(StoreUnavailable):
        rewind_world(world, ToBucket(FIRST + 1), most_rows=4)
    world.store.before = no_fault
    assert superseded(world) == {FIRST + 3, FIRST + 4}
    assert world.manifest().state.seen_at is None, "it has given up ownership, so it can be repeated immediately"
    again = rewind_world(world, ToBucket(FIRST + 1), most_rows=4)
    assert [[row.bucket for row in batch] for batch in again.batches] == [[FIRST + 2] * 4, [FIRST + 1] * 4]
    assert rewind_world(world, ToBucket(FIRST + 1)).rows == 0, "another rewind to it changes nothing"
    world.start()
    check_stored_exactly_once(world)


def test_27_an_ended_key_whose_only_record_is_in_a_superseded_bucket_is_kept(world: World) -> None:
    key, time = ("m", "ahead"), START + 30 * HOUR  # A sample from the future: its key ends soon, and is kept for long.
    world.start()
    world.produce((*key, time, 1.0))
    world.pass_hours(17)
    stop_shard(world)
    newest = max(buckets_with(world, key))
    assert newest > FIRST + 10, "it was rolled over"
    rewind_world(world, ToBucket(newest))
    while len(buckets_with(world, key)) > 1:
        world.pass_time(HOUR)  # The others expire while no shard runs.
    assert buckets_with(world, key) == superseded(world) & {newest}
    world.start()
    assert world.keys()[key] == (time, time, time)
    world.settle()
    assert superseded(world) == set()
    world.crash()
    world.start()
    assert world.keys()[key] == (time, time, time), "it was written again, although no record has its key"


def test_27_a_key_that_was_purged_and_recreated_after_the_cut_has_its_id_of_the_cut(world: World) -> None:
    """Its record from before the cut expires before the start, and superseded buckets name it under both ids."""
    key = ("m", "back")
    world.start()
    for _ in range(2):
        world.produce((*key, world.clock.now_ms(), 1.0))
        world.pass_hours(1)
    ((old, named),) = ids(world).items()
    for _ in range(5):
        world.produce(("m", "other", world.clock.now_ms(), 1.0))
        world.pass_hours(1)
    assert old not in ids(world), "it was purged"
    world.produce((*key, world.clock.now_ms(), 2.0))
    world.pass_hours(1)
    keys = world.keys()
    assert keys[key][0] == START + 7 * HOUR, "it was recreated"
    stop_shard(world)
    rewind_world(world, ToBucket(FIRST + 2))
    while FIRST in buckets_with(world, key):
        world.pass_time(10 * MINUTE)
    let_expire(world, FIRST)
    assert buckets_with(world, key) == {FIRST + 2, FIRST + 7}
    world.start()
    assert ids(world)[old] == named, "active ids of the bucket before the cut name it"
    assert world.keys()[key] == (START, START + HOUR, START + HOUR)
    world.read_all()
    while FIRST + 2 in superseded(world):
        world.running.flusher.step()
    assert_world_sound(world)
    world.settle()
    assert_world_sound(world)
    assert superseded(world) == set()
    assert old not in ids(world), "it was purged again"
    assert world.keys()[key][0] == keys[key][0], "it was recreated again"


def test_rewritten_rows_take_precedence_over_superseded_ones(world: World) -> None:
    """A rewind corrects wrong data. A crash during the rewind must not revert the corrections."""
    world.options = replace(world.options, sample_limits=SampleLimits(behind=HOUR, ahead=None))
    world.start()
    world.produce(("m", "a", START, 1.0), ("m", "a", START - 3 * HOUR, 2.0))
    world.pass_hours(3)
    assert world.keys()["m", "a"][0] == START, "the older sample was refused"
    stop_shard(world)
    rewind_world(world, ToBucket(FIRST))
    world.options = replace(world.options, sample_limits=SampleLimits(None, None))
    world.start()
    world.read_all()
    while superseded(world) != {FIRST + 1, FIRST + 2}:
        world.running.flusher.step()
    world.crash()
    world.start()
    check_stored_exactly_once(world)
    assert world.keys()["m", "a"] == (START - 3 * HOUR, START, START)
    world.crash()
    world.start()
    assert world.keys()["m", "a"] == (START - 3 * HOUR, START, START)


def test_a_crash_at_any_call_of_a_rewind_and_the_following_start_loses_and_duplicates_nothing(
    make_world: Callable[..., World],
) -> None:
    calm = world_with_history(make_world())
    calm.start()
    calm.settle()
    keys, crashes = calm.keys(), 0
    for crash_at in range(10_000):
        world = world_with_history(make_world())
        left = crash_at

        def count(_call: StoreCall) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Crash

        world.store.before = world.store.after = count
        crashed = True
        with suppress(Crash):
            rewind_world(world, ToBucket(FIRST + 2), most_rows=4)
            world.start()
            world.settle()
            crashed = False
        world.crash()
        world.start()
        check_stored_exactly_once(world)
        assert world.keys() == keys, f"after a crash at call {crash_at}"
        assert superseded(world) == set()
        if not crashed:
            break
        crashes += 1
    assert crashes > 60, "there are more calls than that"


def test_a_stuck_group_and_a_later_rewind_leave_no_hole(make_world: Callable[..., World]) -> None:
    world = make_world(policy=LASTING)
    for stuck in (other_group(world), designated_group(world.options.shard, world.options.groups)):
        world.start()
        produce_everywhere(world, f"before {stuck}")
        world.store.before = group_fails(stuck)
        world.pass_hours(1)
        produce_everywhere(world, f"after {stuck}")
        world.pass_hours(2)
        stop_shard(world)
        newest = world.manifest().cuts[0].bucket
        plan = rewind_world(world, ToBucket(newest - 1))
        assert plan.rows == 2 * (world.options.groups - 1), "the stuck group has no row to supersede"
        world.start()
        assert world.running.position < plan.offset, "it begins where the stuck group does"
        check_stored_exactly_once(world)
        world.crash()


def test_a_rewind_to_the_first_offset_reads_everything_again(world: World) -> None:
    world_with_history(world, hours=2)
    plan = rewind_world(world, ToOffset(0))
    assert (plan.bucket, plan.buckets, plan.records) == (FIRST, 2, 4)
    world.start()
    check_stored_exactly_once(world)


def test_late_samples_are_late_again_after_a_rewind(world: World) -> None:
    world.start()
    produce_everywhere(world)
    world.pass_hours(2)
    world.produce(("m", "late", START + MINUTE, 1.0))
    world.pass_hours(1)
    before = {(row.bucket, row.group): row.late for row in world.manifest().groups}
    assert any(before.values())
    stop_shard(world)
    rewind_world(world, ToBucket(FIRST + 1))
    world.start()
    check_stored_exactly_once(world)
    assert {(row.bucket, row.group): row.late for row in world.manifest().groups} == before


def test_a_second_rewind_may_go_further_back_than_the_first(world: World) -> None:
    world_with_history(world)
    rewind_world(world, ToBucket(FIRST + 3))
    world.start()
    world.read_all()
    while superseded(world) != {FIRST + 4}:
        world.running.flusher.step()
    stop_shard(world)
    plan = rewind_world(world, ToBucket(FIRST + 1))
    assert {row.bucket for batch in plan.batches for row in batch} == {FIRST + 1, FIRST + 2, FIRST + 3}
    world.start()
    check_stored_exactly_once(world)
