"""A shard that is behind can't know where a bucket ends, because a broker's clock may have been ahead for the record
that closes it. The hour is ready once everything is read that had reached the log in it.
"""

from dataclasses import replace

import pytest

from strandline.node.shard.options import ReplayMode
from strandline.recovery.periods import Period
from strandline.recovery.readiness import StoredDataset, Verdict, readiness
from strandline.store.protocol import StoreUnavailable
from support.rewound_worlds import cutting_of
from support.shard_world import GRACE, HOUR, MINUTE, START, StoreCall, World, no_fault, produce_everywhere

pytestmark = pytest.mark.simulation

FIRST = START // HOUR


def is_ready(world: World, hour: int) -> bool:
    now = world.clock.now_ms()
    stored = StoredDataset("metrics", cutting_of(world), world.options.groups, [world.manifest()], 0, now)
    return readiness(stored, Period(hour)).verdict is Verdict.READY


def early(world: World) -> list[int]:
    """The buckets whose end is not confirmed."""
    return sorted(cut.bucket for cut in world.manifest().cuts if cut.closed_early)


def produce_ahead(world: World, ahead: int) -> None:
    """Produce a record while the leader's clock is ahead."""
    now = world.clock.now_ms()
    world.produce(("metric_0", "ahead", now, 1.0), late=-ahead)


def hour_with_a_record_ahead(world: World) -> None:
    """While nothing reads: twenty minutes before the hour's end, a record is dated after it, and others follow."""
    world.pass_time(30 * MINUTE)
    produce_ahead(world, 25 * MINUTE)
    world.pass_time(10 * MINUTE)
    for _ in range(8):
        produce_everywhere(world, "behind")
    world.pass_time(20 * MINUTE)
    produce_everywhere(world, "next hour")


def start_reading(world: World) -> None:
    """Start the shard, which reads a record of the first hour."""
    world.start()
    produce_everywhere(world)
    world.settle()


def settle(world: World) -> None:
    for _ in range(4):
        world.pass_time(1_000)
        world.settle()


@pytest.mark.parametrize("poll_records", [3, 1_000])
def test_a_stalled_shard_does_not_make_an_hour_ready_whose_records_follow_its_end(
    world: World, poll_records: int
) -> None:
    world.options = replace(world.options, poll_records=poll_records)
    start_reading(world)
    # The shard is suspended meanwhile.
    hour_with_a_record_ahead(world)
    world.running.step()
    world.store_due()
    assert not is_ready(world, FIRST)
    settle(world)
    assert {row.bucket for row in world.manifest().groups} == {FIRST}
    assert early(world) == [FIRST]
    assert not is_ready(world, FIRST)
    world.pass_hours(1)
    assert early(world) == [FIRST], "the next bucket has what belongs to this one"
    assert is_ready(world, FIRST)
    world.check_all_found()


@pytest.mark.parametrize("mode", [ReplayMode.DIRECT, ReplayMode.SPARK])
def test_a_start_does_not_make_an_hour_ready_whose_records_follow_its_end(world: World, mode: ReplayMode) -> None:
    start_reading(world)
    world.crash()
    hour_with_a_record_ahead(world)
    world.replay_by(mode)
    world.start()
    world.work()
    settle(world)
    assert world.is_active()
    assert {row.bucket for row in world.manifest().groups} == {FIRST}
    assert not is_ready(world, FIRST)
    world.pass_hours(1)
    assert is_ready(world, FIRST)
    world.check_all_found()


@pytest.mark.parametrize("mode", [ReplayMode.DIRECT, ReplayMode.SPARK])
def test_hours_that_a_start_has_replayed_are_ready_once_it_has_caught_up(world: World, mode: ReplayMode) -> None:
    start_reading(world)
    world.crash()
    for name in ("first", "second", "third"):
        produce_everywhere(world, name)
        world.pass_time(HOUR)
    produce_everywhere(world, "tail")
    world.replay_by(mode)
    world.start()
    assert early(world) == [FIRST, FIRST + 1, FIRST + 2]
    world.work()
    settle(world)
    assert [is_ready(world, FIRST + hour) for hour in range(4)] == [True, True, True, False]
    # Workers do not report the times of what they read, so only the end of the last bucket is confirmed.
    assert early(world) == ([] if mode is ReplayMode.DIRECT else [FIRST, FIRST + 1])


def test_a_shard_that_keeps_up_closes_buckets_with_confirmed_ends(world: World) -> None:
    world.start()
    for _ in range(3 * 60):
        produce_everywhere(world)
        world.pass_time(MINUTE // 2)
        world.running.step()
        world.running.step()
        world.pass_time(MINUTE // 2)
    commits: list[StoreCall] = []

    def committed(call: StoreCall) -> None:
        if call.name == "commit" and call.arguments[1].cuts:
            commits.append(call)

    world.store.before = committed
    world.settle()
    world.store.before = no_fault
    assert early(world) == []
    assert sum(len(call.arguments[1].cuts) for call in commits) == 3, "each cut is committed once"


def test_a_confirmed_end_is_committed_again_after_a_failure_of_the_store(world: World) -> None:
    start_reading(world)
    world.pass_time(HOUR)
    produce_everywhere(world)
    confirmed: list[int] = []

    def fail_once(call: StoreCall) -> None:
        if call.name == "commit" and any(not cut.closed_early for cut in call.arguments[1].cuts):
            confirmed.append(1)
            if len(confirmed) == 1:
                raise StoreUnavailable("the store is away")

    world.store.before = fail_once
    settle(world)
    world.pass_time(MINUTE)
    settle(world)
    assert len(confirmed) == 2
    assert early(world) == []
    assert is_ready(world, FIRST)


def test_an_end_that_was_not_confirmed_before_a_crash_is_confirmed_by_the_next_start(world: World) -> None:
    start_reading(world)
    world.pass_time(HOUR)
    produce_everywhere(world)
    world.running.step()
    world.store_due(most=1)
    world.crash()
    assert early(world) == [FIRST]
    world.start()
    settle(world)
    assert early(world) == []
    assert is_ready(world, FIRST)


def caught_up(world: World) -> None:
    """What `recover run` does."""
    tool = world.start(reads_tail=False)
    for _ in range(20):
        if tool.is_fully_stored:
            break
        tool.step()
        tool.flusher.step()
        world.pass_time(1_000)
    assert tool.is_fully_stored
    tool.close()


def test_hours_are_ready_after_a_recovery_without_the_tail(world: World) -> None:
    start_reading(world)
    world.crash()
    world.pass_time(HOUR + 2 * GRACE)
    produce_everywhere(world, "tail")
    caught_up(world)
    assert is_ready(world, FIRST)
    assert not is_ready(world, FIRST + 1)


def test_a_recovery_without_the_tail_does_not_make_an_hour_ready_whose_records_follow_its_end(world: World) -> None:
    # Otherwise the batch that ends the bucket has the other records, too.
    world.options = replace(world.options, poll_records=1)
    start_reading(world)
    world.crash()
    hour_with_a_record_ahead(world)
    caught_up(world)
    assert {row.bucket for row in world.manifest().groups} == {FIRST}
    assert not is_ready(world, FIRST)


def test_a_recovery_without_the_tail_ends_although_a_transaction_is_open(world: World) -> None:
    start_reading(world)
    world.crash()
    world.pass_time(HOUR + 2 * GRACE)
    produce_everywhere(world, "tail")
    world.log.begin().append(b"not seen yet", world.clock.now_ms())
    caught_up(world)
    assert not is_ready(world, FIRST)
