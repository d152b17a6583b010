"""Sequences of events that break a naive shard. Each states an invariant, and fails without the rule that
ensures it.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from strandline.index.sample_limits import SampleLimits
from strandline.node.shard.options import ReplayMode
from strandline.recovery.checkpoints import designated_group
from strandline.store.batches import MAX_BATCH_BYTES, row_bytes
from strandline.store.late_samples import MAX_COUNTS
from strandline.store.protocol import StoreUnavailable
from strandline.store.rows import ManifestWrite
from strandline.time_range import TimeRange
from support.shard_world import (
    GRACE,
    HOUR,
    MINUTE,
    START,
    StoreCall,
    World,
    group_fails,
    no_fault,
    other_group,
    produce_everywhere,
)
from support.verifying import assert_world_sound

pytestmark = pytest.mark.simulation


def test_01_a_stuck_group_is_written_after_a_crash_and_no_other_bucket_is_closed_again(world: World) -> None:
    world.start()
    produce_everywhere(world)
    stuck = other_group(world)
    world.store.before = group_fails(stuck)
    world.pass_hours(1)
    produce_everywhere(world, "born later")
    world.pass_hours(1)
    before = world.manifest()
    keys = world.keys()
    first = before.cuts[-1].bucket + 1
    assert set(world.rows(first)) == set(world.rows(first + 1)) == set(range(4)) - {stuck}
    world.crash()
    world.start()
    assert world.keys() == keys, "keys of the second bucket have not ended in the first"
    world.settle()
    after = world.manifest()
    assert set(after.groups) >= set(before.groups), "existing rows are unchanged"
    assert after.cuts == before.cuts
    assert {row.bucket for row in set(after.groups) - set(before.groups)} == {first, first + 1}
    assert {row.group for row in set(after.groups) - set(before.groups)} == {stuck}
    world.check_all_found()
    assert world.is_active()
    assert world.keys() == keys, "records below the index's checkpoint only supply samples"
    assert world.running.index.open.bucket == world.running.bucket


def test_02_a_key_whose_samples_stopped_before_a_crash_ends_at_its_last_sample(
    make_world: Callable[..., World],
) -> None:
    ends = []
    for crashes in (False, True):
        world = make_world()
        world.start()
        world.produce(("m", "a", START + MINUTE, 1.0), ("m", "a", START + 2 * MINUTE, 1.0))
        world.pass_hours(1)
        if crashes:
            world.crash()
            world.start()
        world.pass_hours(2)
        ends.append(world.keys())
    assert ends[0] == ends[1] == {("m", "a"): (START + MINUTE, START + 2 * MINUTE, START + 2 * MINUTE)}


def test_02_a_key_with_samples_in_several_stored_buckets_ends_at_its_last_sample(
    make_world: Callable[..., World],
) -> None:
    ends = []
    for crashes in (False, True):
        world = make_world()
        world.start()
        for _ in range(3):
            produce_everywhere(world)
            world.pass_hours(1)
        if crashes:
            world.crash()
            world.start()
        world.pass_hours(2)
        ends.append(world.keys())
    last = START + 2 * HOUR
    assert set(ends[0].values()) == {(START, last, last)}
    assert ends[1] == ends[0]


def test_03_an_idle_cut_is_valid_whatever_is_produced_after_it(world: World) -> None:
    world.start()
    produce_everywhere(world)
    world.read_all()
    world.pass_time(HOUR + GRACE)
    world.running.step()  # Without records, the clock closes the bucket.
    half = world.options.groups // 2
    while len(world.manifest().groups) < half:
        world.running.flusher.step()
    end = world.manifest().cuts[0].end
    world.produce(("m", "late", START + MINUTE, 7.0), late=HOUR)
    assert world.produced[-1].offset == end
    world.crash()
    world.start()
    world.pass_hours(1)
    cuts = {cut.bucket: (cut.start, cut.end) for cut in world.manifest().cuts}
    closed = max(cuts) - 1
    assert cuts[closed][1] == end
    assert cuts[closed + 1] == (end, end + 1)
    world.check_all_found()


def test_14_a_bucket_that_ends_in_an_aborted_transaction_is_closed_and_replayed(world: World) -> None:
    world.start()
    produce_everywhere(world)
    world.abort_transaction()
    stuck = other_group(world)
    world.store.before = group_fails(stuck)
    world.pass_hours(1)
    assert world.manifest().cuts[0].end == 3, "a record, an aborted one, and the marker"
    world.crash()
    world.start()
    world.settle()
    assert world.is_active()
    world.check_all_found()


def test_14_an_open_transaction_delays_the_cut_and_loses_nothing(world: World) -> None:
    world.start()
    open_transaction = world.log.begin()
    open_transaction.append(b"", world.clock.now_ms())
    world.pass_hours(2)
    assert len(world.manifest().cuts) == 1, "the open transaction may still add a record to the bucket"
    open_transaction.commit()
    world.pass_hours(1)
    assert len(world.manifest().cuts) > 1
    assert world.status.counters.records == 1


def test_15_samples_that_were_on_time_when_produced_are_accepted_ten_hours_later(
    make_world: Callable[..., World],
) -> None:
    world = make_world(sample_limits=SampleLimits(behind=2 * HOUR, ahead=10 * MINUTE))
    produce_everywhere(world)
    now = world.clock.now_ms()
    world.produce(("m", "too old", now - 3 * HOUR, 1.0), ("m", "too far", now + HOUR, 1.0), ("m", "ok", now, 1.0))
    world.pass_time(4 * HOUR)
    world.start()
    world.settle()
    counters = world.status.counters
    assert (counters.too_old, counters.too_far_ahead) == (1, 1)
    names = {name for _, name in world.found()}
    assert names == {"a", "ok"}


def test_16_many_samples_of_one_series_and_two_with_the_same_timestamp(make_world: Callable[..., World]) -> None:
    world = make_world(seal_rows=1000)
    world.start()
    for part in range(36):
        world.produce(*(("m", "a", START + part * 1000 + number, float(number)) for number in range(1000)))
    world.produce(("m", "a", START, -1.0), ("m", "a", START, -2.0), ("m", "b", START, 5.0), ("m", "b", START, 6.0))
    world.read_all()
    world.check_all_found()
    world.pass_hours(1)
    world.check_all_found()
    assert world.found()["m", "a"][START] == -2.0
    world.crash()
    world.start()
    world.settle()
    world.check_all_found()


def test_17_reading_continues_beyond_the_memory_limit_and_loses_nothing(make_world: Callable[..., World]) -> None:
    world = make_world(buffer_bytes=1, seal_rows=8)
    world.start()
    for _ in range(20):
        produce_everywhere(world)
        world.pass_time(MINUTE)
    world.read_all()
    spilled = list((world.options.folder / "spill").iterdir())
    assert spilled, "pages were spilled"
    world.check_all_found()
    world.pass_hours(1)
    world.check_all_found()
    assert not list((world.options.folder / "spill").iterdir()), "stored data needs no spilled page"


def test_19_samples_sent_again_after_three_hours_are_found_in_their_hours(world: World) -> None:
    world.start()
    produce_everywhere(world)
    world.pass_hours(3)
    late = [("m", "retried", START + hour * HOUR + MINUTE, float(hour)) for hour in range(3)]
    world.produce(*late)
    world.pass_hours(2)
    for hour in range(3):
        within = TimeRange(START + hour * HOUR, START + (hour + 1) * HOUR - 1)
        assert world.found(within)["m", "retried"] == {START + hour * HOUR + MINUTE: float(hour)}
    rows = world.manifest().groups
    assert {(late.hour, late.samples) for row in rows for late in row.late} == {(1000, 1), (1001, 1), (1002, 1)}
    world.check_all_found()


def test_20_a_query_during_the_commit_of_a_group_has_no_hole_and_no_duplicate(world: World) -> None:
    world.start()
    produce_everywhere(world)
    world.read_all()
    world.pass_time(HOUR + GRACE)
    world.running.step()
    calls = 0

    def ask(call: StoreCall) -> None:
        nonlocal calls
        if call.name in {"commit", "write_segments"}:
            calls += 1
            assert world.found() == world.expected(), f"at call {calls}, {call.name}"

    world.store.before = world.store.after = ask
    world.store_due()
    assert calls >= 4 * world.options.groups
    assert world.found() == world.expected()


def test_25_an_index_bucket_is_never_stored_before_the_one_before_it(world: World) -> None:
    world.start()
    designated = designated_group(world.options.shard, world.options.groups)
    world.store.before = group_fails(designated)
    for name in "abc":
        produce_everywhere(world, name)
        world.pass_hours(1)
    assert all(row.group != designated for row in world.manifest().groups)
    world.store.before = no_fault
    world.pass_time(MINUTE)
    committed: list[int] = []

    def note(call: StoreCall) -> None:
        if call.name == "commit":
            committed.extend(row.bucket for row in call.arguments[1].groups if row.index)

    world.store.after = note
    world.store_due()
    assert committed == sorted(committed)
    assert len(committed) == 3
    world.crash()
    world.start()
    world.settle()
    world.check_all_found()


def test_26_nothing_is_cut_and_no_key_ends_while_kafka_is_unreachable(world: World) -> None:
    world.start()
    produce_everywhere(world)
    world.settle()
    before = world.manifest()
    world.log.reachable = False
    world.pass_hours(2)
    assert world.manifest() == replace(before, state=world.manifest().state)
    assert all(end is None for _, _, end in world.keys().values())
    world.log.reachable = True
    produce_everywhere(world, "again")
    world.pass_hours(1)
    world.check_all_found()


def test_30_a_late_sample_lowers_the_start_permanently(world: World) -> None:
    world.start()
    world.produce(("m", "a", START + MINUTE, 1.0))
    world.pass_hours(1)
    world.produce(("m", "a", START - HOUR, 2.0))
    world.pass_hours(1)
    world.crash()
    world.start()
    assert world.keys()["m", "a"][0] == START - HOUR
    world.check_all_found()


def test_31_a_bucket_with_only_a_late_sample_does_not_lower_the_end(world: World) -> None:
    world.start()
    world.produce(("m", "a", START + MINUTE, 1.0))
    world.pass_hours(1)
    world.produce(("m", "a", START, 2.0))
    world.pass_hours(2)
    assert world.keys()["m", "a"] == (START, START + MINUTE, START + MINUTE)


def test_nothing_of_a_bucket_is_stored_before_its_cut_is_committed(world: World) -> None:
    world.start()
    produce_everywhere(world)

    def refuse(call: StoreCall) -> None:
        if call.name == "commit" and call.arguments[1].cuts:
            raise StoreUnavailable("no answer")
        assert call.writes_group is None

    world.store.before = refuse
    world.pass_hours(1)
    world.pass_time(HOUR)
    world.store_due()
    assert world.status.counters.store_retries > 0
    world.store.before = no_fault
    world.pass_time(MINUTE)
    world.settle()
    world.check_all_found()


def test_35_a_loop_that_stalls_for_hours_skips_no_bucket(world: World) -> None:
    world.start()
    produce_everywhere(world)
    world.settle()
    world.pass_time(5 * HOUR)
    produce_everywhere(world, "after")
    world.settle()
    buckets = [cut.bucket for cut in world.manifest().cuts]
    assert buckets == list(range(max(buckets), min(buckets) - 1, -1))
    assert len(buckets) == 6
    assert all(len(world.rows(bucket)) == 4 for bucket in buckets[:-1])
    world.check_all_found()


def test_44_a_backfill_of_ten_years_in_one_bucket_stays_within_the_store_s_limits(
    make_world: Callable[..., World],
) -> None:
    """A shard that reads it and workers that replay it count the same late samples."""
    late_by_group = []
    for mode in (ReplayMode.DIRECT, ReplayMode.SPARK):
        world, written = make_world(), []
        world.replay_by(mode)

        def note(call: StoreCall, written: list[ManifestWrite] = written) -> None:
            if call.name == "commit":
                written.append(call.arguments[1])

        world.start()
        world.crash()
        world.store.before = note
        for first in range(0, 3_652, 100):
            days = range(first, min(first + 100, 3_652))
            world.produce(*(("m", "backfilled", START - day * 24 * HOUR, float(day)) for day in days))
        world.pass_time(2 * HOUR)
        world.start()
        world.work()
        world.settle()
        assert not world.running.flusher.closed_buckets()
        for write in written:
            assert sum(map(row_bytes, (*write.cuts, *write.groups))) <= MAX_BATCH_BYTES
        rows = world.manifest().groups
        assert sum(late.samples for row in rows for late in row.late) == 3_651
        assert all(len(row.late) <= MAX_COUNTS for row in rows)
        for day in (1, 31, 32, 1_000, 3_651):
            hour = (START - day * 24 * HOUR) // HOUR
            assert any(late.hour <= hour < late.hour + late.hours for row in rows for late in row.late)
        world.check_all_found()
        assert_world_sound(world)
        late_by_group.append({(row.bucket, row.group): row.late for row in rows})
    assert late_by_group[0] == late_by_group[1]
