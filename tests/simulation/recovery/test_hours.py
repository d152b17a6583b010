"""Hours in a world that continues: ready only when everything is stored, and revised when samples are late."""

from collections.abc import Callable

import pytest

from strandline.recovery.offset_policy import Accepted, FirstStart, StartAt
from strandline.recovery.periods import Period
from strandline.recovery.readiness import (
    AcceptedLoss,
    LossReason,
    Readiness,
    StoredDataset,
    Verdict,
    newest_ready_hour,
    partition_progress,
    readiness,
)
from strandline.recovery.rewinding import ToBucket
from support.rewound_worlds import cutting_of, rewind_world, stop_shard
from support.shard_world import (
    GRACE,
    HOUR,
    MINUTE,
    POLICY,
    START,
    World,
    group_fails,
    no_fault,
    other_group,
    produce_everywhere,
)

pytestmark = pytest.mark.simulation

FIRST = START // HOUR


def stored(*partitions: World) -> StoredDataset:
    """Worlds that are the partitions of one dataset, each with a separate store and the same times."""
    one = partitions[0]
    known_since = one.clock.now_ms() - one.options.row_lifetime
    manifests = [each.sqlite.manifest(each.options.shard) for each in partitions]
    return StoredDataset("metrics", cutting_of(one), one.options.groups, manifests, known_since, one.clock.now_ms())


def readiness_of(hour: int, *partitions: World) -> Readiness:
    return readiness(stored(*partitions), Period(hour))


def ready(*partitions: World) -> list[int]:
    """The hours that are ready."""
    hours = range(FIRST - 30, FIRST + 40)
    return [hour for hour in hours if readiness_of(hour, *partitions).verdict is Verdict.READY]


def test_hours_become_ready_in_order_and_not_before_the_end_of_their_grace(world: World) -> None:
    world.start()
    for hour in range(3):
        produce_everywhere(world, str(hour))
        world.settle()
        # Without a record that closes it, it is overdue a grace after its deadline.
        world.pass_time((FIRST + hour + 1) * HOUR + 2 * GRACE - 1 - world.clock.now_ms())
        world.settle()
        assert ready(world) == list(range(FIRST, FIRST + hour)), "a record may still arrive for it"
        world.pass_time(1)
        world.settle()
        assert ready(world) == list(range(FIRST, FIRST + hour + 1))
        assert newest_ready_hour(stored(world)) == FIRST + hour


def test_an_hour_is_ready_only_once_its_last_group_is_stored(world: World) -> None:
    world.start()
    produce_everywhere(world)
    stuck = other_group(world)
    world.store.before = group_fails(stuck)
    world.pass_hours(2)
    found = readiness_of(FIRST, world)
    assert found.verdict is Verdict.NOT_READY
    assert [(behind.shard, behind.missing_groups, behind.reached_bucket) for behind in found.behind] == [
        (0, (stuck,), FIRST - 1)
    ]
    world.store.before = no_fault
    world.pass_time(MINUTE)
    world.settle()
    assert ready(world) == [FIRST, FIRST + 1]


def test_an_hour_without_a_record_becomes_ready_by_the_clock(world: World) -> None:
    world.start()
    world.pass_hours(3)
    assert ready(world) == [FIRST, FIRST + 1, FIRST + 2]


def test_26_no_hour_becomes_ready_while_kafka_is_unreachable(world: World) -> None:
    world.start()
    produce_everywhere(world)
    world.pass_hours(1)
    assert ready(world) == [FIRST]
    world.log.reachable = False
    world.pass_hours(2)
    assert ready(world) == [FIRST]
    (standing,) = partition_progress(stored(world), world.clock.now_ms())
    assert standing.behind_ms == world.clock.now_ms() - (FIRST + 1) * HOUR
    world.log.reachable = True
    produce_everywhere(world, "after")
    world.pass_hours(1)
    assert ready(world) == [FIRST + hour for hour in range(4)]


def test_the_slowest_partition_delays_an_hour(make_world: Callable[..., World]) -> None:
    fast, slow = make_world(), make_world()
    for world in (fast, slow):
        world.start()
        produce_everywhere(world)
        world.settle()
    slow.log.reachable = False
    for world in (fast, slow):
        world.pass_hours(1)
    assert ready(fast) == [FIRST]
    assert ready(fast, slow) == []
    (behind,) = readiness_of(FIRST, fast, slow).behind
    assert (behind.shard, behind.reached_bucket, behind.behind_ms) == (1, FIRST - 1, HOUR)
    slow.log.reachable = True
    slow.settle()
    assert ready(fast, slow) == [FIRST]


def test_an_unread_partition_delays_all_hours_since_its_start(
    make_world: Callable[..., World],
) -> None:
    old, new = make_world(), make_world(first_start=FirstStart(StartAt.EARLIEST))
    old.start()
    old.pass_hours(2)
    assert ready(old) == [FIRST, FIRST + 1]
    assert ready(old, new) == [], "its content is not known yet"
    new.pass_time(2 * HOUR)
    new.start()
    new.settle()
    assert readiness_of(FIRST, old, new).started_later == (1,)
    assert ready(old, new) == [FIRST, FIRST + 1]
    for world in (old, new):
        world.pass_hours(1)
    assert ready(old, new) == [FIRST, FIRST + 1, FIRST + 2]


def test_a_late_sample_raises_the_revision_of_its_hour_and_of_no_other(world: World) -> None:
    world.start()
    produce_everywhere(world)
    world.pass_hours(2)
    assert readiness_of(FIRST, world).revision == 0
    world.produce(("m", "late", START + MINUTE, 1.0), ("m", "late", START + 2 * MINUTE, 1.0))
    world.settle()
    assert readiness_of(FIRST, world).revision == 0, "it is not stored yet"
    world.pass_hours(1)
    found = readiness_of(FIRST, world)
    assert (found.verdict, found.revision, found.late_samples) == (Verdict.READY, 1, 2)
    assert [readiness_of(FIRST + hour, world).revision for hour in (1, 2)] == [0, 0]
    world.produce(("m", "late", START + 3 * MINUTE, 1.0))
    world.pass_hours(1)
    found = readiness_of(FIRST, world)
    assert (found.revision, found.late_samples) == (2, 3)


def test_samples_within_the_grace_are_not_late(world: World) -> None:
    world.start()
    world.pass_time((FIRST + 1) * HOUR + GRACE - 1 - world.clock.now_ms())
    world.produce(("m", "just in time", (FIRST + 1) * HOUR - 1, 1.0))
    world.pass_hours(2)
    assert (readiness_of(FIRST, world).verdict, readiness_of(FIRST, world).revision) == (Verdict.READY, 0)


def test_crashes_change_neither_readiness_nor_revisions(world: World) -> None:
    world.start()
    seen = []
    for hour in range(5):
        world.produce(("m", "a", world.clock.now_ms() - hour * HOUR, 1.0))
        world.pass_hours(1)
        before = [readiness_of(hour, world) for hour in ready(world)]
        world.crash()
        world.start()
        world.settle()
        assert [readiness_of(hour, world) for hour in ready(world)] == before
        seen.append([(readiness.revision, readiness.late_samples) for readiness in before])
    # Except for the first hour, each hour's sample belongs to the first hour, so that each adds one more bucket to it.
    assert [readiness[0] for readiness in seen] == [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]


def test_a_rewind_revokes_hours_and_a_start_makes_them_ready_again_with_their_revisions(world: World) -> None:
    world.start()
    for _ in range(4):
        produce_everywhere(world)
        world.produce(("m", "late", START, float(world.clock.now_ms())))
        world.pass_hours(1)
    before = [readiness_of(FIRST + hour, world) for hour in range(4)]
    assert [readiness.revision for readiness in before] == [3, 0, 0, 0]
    stop_shard(world)
    rewind_world(world, ToBucket(FIRST + 2))
    assert ready(world) == [FIRST, FIRST + 1]
    during_rewind = readiness_of(FIRST, world)
    assert (during_rewind.revision, during_rewind.late_samples, during_rewind.rewound_samples) == (3, 3, 2)
    world.start()
    world.settle()
    assert [readiness_of(FIRST + hour, world) for hour in range(4)] == before


def test_an_accepted_loss_is_reported_with_its_hour(world: World) -> None:
    world.start()
    produce_everywhere(world, "1")
    produce_everywhere(world, "2")
    world.read_all()
    world.crash()
    world.log.delete_before(1)
    world.start(accepted=Accepted(loss_to=1))
    world.pass_hours(2)
    assert readiness_of(FIRST, world).verdict is Verdict.READY
    assert readiness_of(FIRST, world).losses == (AcceptedLoss(0, 0, 1, (FIRST,), LossReason.DELETED),)
    assert readiness_of(FIRST - 1, world).verdict is Verdict.UNKNOWN


def test_an_hour_in_which_a_loss_was_accepted_is_ready_once_the_rest_of_it_is_stored(world: World) -> None:
    """The loss closes the hour's bucket immediately. Later records of the hour are in the next bucket."""
    world.start()
    produce_everywhere(world, "lost")
    world.read_all()
    world.crash()
    world.log.delete_before(1)
    world.start(accepted=Accepted(loss_to=1))
    produce_everywhere(world, "not lost")
    world.pass_hours(1)
    assert [cut.bucket for cut in world.manifest().cuts if not cut.reset] == [FIRST]
    assert {row.bucket for row in world.manifest().groups} == {FIRST}, "it is stored"
    assert ready(world) == []
    (behind,) = readiness_of(FIRST, world).behind
    assert (behind.needed_bucket, behind.reached_bucket, behind.behind_ms) == (FIRST + 1, FIRST, HOUR)
    world.pass_hours(1)
    assert ready(world) == [FIRST, FIRST + 1]
    assert {name for _, name in world.found()} == {"not lost"}


def test_an_hour_in_which_a_topic_was_recreated_is_ready_once_the_rest_of_it_is_stored(world: World) -> None:
    world.start()
    world.pass_hours(1)
    produce_everywhere(world, "old")
    world.read_all()
    world.crash()
    world.log.recreate()
    del world.produced[:]
    produce_everywhere(world, "new")
    world.start(accepted=Accepted(another_topic=True))
    world.pass_hours(1)
    assert ready(world) == [FIRST]
    assert newest_ready_hour(stored(world)) == FIRST
    world.pass_hours(1)
    assert ready(world) == [FIRST, FIRST + 1, FIRST + 2]


def test_a_recreated_topic_leaves_a_loss_and_later_hours_become_ready(world: World) -> None:
    world.start()
    produce_everywhere(world, "stored")
    world.pass_hours(1)
    produce_everywhere(world, "read, and not stored")
    world.read_all()
    world.crash()
    world.log.recreate()
    world.pass_time(3 * HOUR)
    world.start(accepted=Accepted(another_topic=True))
    world.pass_hours(2)
    began = FIRST + 4
    assert ready(world) == list(range(FIRST, began + 2))
    assert readiness_of(FIRST, world).losses == ()
    for hour in range(FIRST + 1, began):
        (loss,) = readiness_of(hour, world).losses
        assert (loss.first, loss.behind, loss.reason) == (1, None, LossReason.TOPIC_RECREATED)


def test_hours_older_than_the_history_are_unknown_and_never_ready_again(make_world: Callable[..., World]) -> None:
    world = make_world(history=0)
    world.start()
    life = (POLICY.retention + POLICY.margin) // HOUR
    for _ in range(life + 5):
        world.pass_hours(1)
    found = readiness_of(FIRST, world)
    assert (found.verdict, found.reason) == (Verdict.UNKNOWN, "older than the history")
    oldest = min(ready(world))
    assert FIRST < oldest < FIRST + 10
    assert {readiness_of(hour, world).verdict for hour in range(FIRST - 5, oldest)} == {Verdict.UNKNOWN}
