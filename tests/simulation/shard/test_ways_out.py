"""Nothing ends a shard for good: what is damaged or gone is recovered where it can be, named, and may be accepted."""

from collections.abc import Callable

import pytest

from strandline.node.shard.index_damage import IndexBucketLost
from strandline.recovery.checkpoints import designated_group
from strandline.recovery.offset_policy import Accepted, AnotherLog, HistoryExpired
from strandline.store.rows import GroupRow, IndexBucketOf, Lifetime
from support.shard_world import HOUR, World, produce_everywhere

pytestmark = pytest.mark.simulation


def index_row(world: World, bucket: int) -> GroupRow:
    """The manifest row that names a bucket's index."""
    row = world.rows(bucket)[designated_group(world.options.shard, world.options.groups)]
    assert row.index is not None
    return row


def damage(world: World, bucket: int, change: str) -> None:
    """Change the last row of an index bucket in the store's file: take it away, or turn a bit. Or take all away."""
    row = index_row(world, bucket)
    assert row.index is not None
    rows = tuple(world.sqlite.index_bucket(IndexBucketOf(world.options.shard, bucket, row.index.attempt)))
    match change:
        case "missing":
            left = rows[:-1]
        case "all missing":
            left = ()
        case _:
            left = (*rows[:-1], rows[-1][:-1] + bytes([rows[-1][-1] ^ 1]))
    with world.sqlite._connections.writing() as connection:
        connection.execute("DELETE FROM index_buckets WHERE attempt = ?", (row.index.attempt,))
    where = IndexBucketOf(world.options.shard, bucket, row.index.attempt)
    world.sqlite.write_index_bucket(where, left, Lifetime.until(row.data_expires, world.clock.now_ms()))


def names(world: World) -> set[str]:
    """The names that the keys of the index have."""
    return {name for _, name in set(world.keys())}


def lived(world: World, hours: int = 4) -> int:
    """A shard that has stored some hours and is gone; the first bucket."""
    world.start()
    first = world.running.bucket
    for hour in range(hours):
        produce_everywhere(world, "always")
        produce_everywhere(world, f"hour {hour}")
        world.pass_hours(1)
    world.crash()
    return first


CHANGES = pytest.mark.parametrize("change", ["missing", "all missing", "a bit turned"])


@CHANGES
def test_43_a_damaged_index_bucket_is_read_again_from_kafka(world: World, change: str) -> None:
    first = lived(world)
    damage(world, first + 1, change)
    world.start()
    world.settle()
    world.pass_hours(1)
    assert world.is_active()
    world.check_all_found()
    assert len(world.keys()) == 5 * 12
    world.crash()
    world.start()
    assert not any(row.superseded for row in world.manifest().groups), "all of it is written again"


def test_43_two_damaged_index_buckets_are_read_again_from_the_older_one_on(world: World) -> None:
    first = lived(world)
    damage(world, first, "missing")
    damage(world, first + 2, "all missing")
    world.start()
    world.settle()
    world.pass_hours(1)
    assert world.is_active()
    world.check_all_found()


@CHANGES
def test_43_what_kafka_no_longer_has_is_named_and_may_be_accepted(world: World, change: str) -> None:
    first = lived(world)
    damage(world, first + 1, change)
    world.log.delete_before(6)
    with pytest.raises(IndexBucketLost, match=f"index bucket {first + 1}.*Kafka no longer has its records"):
        world.start()
    with pytest.raises(IndexBucketLost):
        world.start()
    world.start(accepted=Accepted(index_loss=True))
    world.settle()
    assert world.is_active()
    found = names(world)
    assert {"hour 0", "hour 2", "hour 3"} <= found, "what other buckets name is there"
    world.crash()
    world.start()
    world.settle()
    assert world.is_active(), "what is left was stored in its place: nothing has to be accepted twice"
    assert names(world) == found


def test_43_a_key_that_was_lost_with_its_bucket_is_found_again_with_its_next_sample(world: World) -> None:
    first = lived(world)
    damage(world, first + 1, "all missing")
    world.log.delete_before(6)
    world.start(accepted=Accepted(index_loss=True))
    produce_everywhere(world, "hour 1", 2.0)
    world.pass_hours(1)
    samples = world.found()
    assert all(len(samples[metric, "hour 1"]) == 2 for metric, name in samples if name == "hour 1")


def test_42_a_shard_whose_manifest_has_expired_is_no_first_start(make_world: Callable[..., World]) -> None:
    world = make_world()
    lived(world)
    # Longer than all rows live: the store has deleted them.
    world.pass_time(world.options.row_life + 10 * HOUR)
    for name in "ab":
        produce_everywhere(world, name)
    world.log.delete_before(8)
    with world.sqlite._connections.writing() as connection:
        connection.execute("DELETE FROM cuts")
        connection.execute("DELETE FROM flush_groups")
    for _ in range(2):
        with pytest.raises(HistoryExpired, match=r"was read before.*Kafka holds the offsets \[8, 10\)"):
            world.start()
    world.start(accepted=Accepted(loss_to=8))
    world.settle()
    assert world.is_active()
    assert names(world) == {"a", "b"}
    assert int(world.running.index.columns.rows.part_id.min()) >= 5 * 12, "no id is given twice"


def test_a_log_that_was_cut_short_and_filled_again_is_refused_until_it_is_accepted(world: World) -> None:
    """As after an unclean leader election: the offsets are all there, and the records are others."""
    lived(world)
    entries = world.log._partition.entries
    for entry in entries[-3:]:
        entry.value = b"another record"
    with pytest.raises(AnotherLog, match="another record at offset 7 than the one that was read there"):
        world.start()
    world.start(accepted=Accepted(another_topic=True))
    world.settle()
    assert world.is_active()


def test_a_log_whose_last_read_record_has_another_time_is_another_log(world: World) -> None:
    lived(world)
    world.log._partition.entries[-1].time += 1
    with pytest.raises(AnotherLog):
        world.start()


def test_a_log_that_no_longer_has_the_record_is_not_compared(world: World) -> None:
    lived(world)
    world.log._partition.entries[-1].value = b"another record"
    world.log.delete_before(8)
    world.start()
    world.settle()
    assert world.is_active()
