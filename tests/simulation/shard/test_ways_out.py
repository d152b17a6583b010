"""No damage stops a shard permanently: lost data is recovered where possible, reported otherwise, and the loss can be
accepted.
"""

from collections.abc import Callable

import pytest

from strandline.index.cut_snapshot import CutSnapshot
from strandline.node.shard import index_loss
from strandline.node.shard.index_damage import IndexBucketLost, IndexRepair
from strandline.node.shard.ownership import take_shard
from strandline.node.shard.shard import Shard
from strandline.node.shard.starting import StartStopped, read_manifest
from strandline.recovery.checkpoints import designated_group
from strandline.recovery.offset_policy import Accepted, HistoryExpired, LogMismatch
from strandline.recovery.verification.findings import FindingKind, NoteKind
from strandline.store.rows import GroupRow, IndexBucketOf, Lifetime
from support.shard_world import HOUR, METRICS, World, produce_everywhere
from support.verifying import assert_world_sound, findings_of, note_kinds

pytestmark = pytest.mark.simulation


def index_row(world: World, bucket: int) -> GroupRow:
    """The manifest row that names a bucket's index."""
    row = world.rows(bucket)[designated_group(world.options.shard, world.options.groups)]
    assert row.index is not None
    return row


def damage(world: World, bucket: int, change: str) -> None:
    """Change the last row of an index bucket in the store's file: delete it, or flip a bit; or delete all rows, or the
    row with the key records.
    """
    row = index_row(world, bucket)
    assert row.index is not None
    rows = tuple(world.sqlite.index_bucket(IndexBucketOf(world.options.shard, bucket, row.index.attempt)))
    match change:
        case "missing":
            left = rows[:-1]
        case "all missing":
            left = ()
        case "records missing":
            left = (rows[0], *rows[2:])
        case _:
            left = (*rows[:-1], rows[-1][:-1] + bytes([rows[-1][-1] ^ 1]))
    with world.sqlite._connections.writing() as connection:
        connection.execute("DELETE FROM index_buckets WHERE attempt = ?", (row.index.attempt,))
    where = IndexBucketOf(world.options.shard, bucket, row.index.attempt)
    world.sqlite.write_index_bucket(where, left, Lifetime.until(row.data_expires, world.clock.now_ms()))


def names(world: World) -> set[str]:
    """The names that the keys of the index have."""
    return {name for _, name in set(world.keys())}


def run_and_crash(world: World, hours: int = 4) -> int:
    """Run a shard for some hours, and crash it. Returns the first bucket."""
    world.start()
    first = world.running.bucket
    for hour in range(hours):
        produce_everywhere(world, "always")
        produce_everywhere(world, f"hour {hour}")
        world.pass_hours(1)
    world.crash()
    return first


CHANGES = pytest.mark.parametrize("change", ["missing", "all missing", "flipped bit"])


@CHANGES
def test_43_a_damaged_index_bucket_is_read_again_from_kafka(world: World, change: str) -> None:
    first = run_and_crash(world)
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


def test_43_records_are_read_again_from_the_older_of_two_damaged_index_buckets(world: World) -> None:
    first = run_and_crash(world)
    damage(world, first, "missing")
    damage(world, first + 2, "all missing")
    world.start()
    world.settle()
    world.pass_hours(1)
    assert world.is_active()
    world.check_all_found()


@CHANGES
def test_43_records_that_kafka_no_longer_has_are_reported_and_may_be_accepted_as_lost(
    world: World, change: str
) -> None:
    first = run_and_crash(world)
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
    assert {"hour 0", "hour 2", "hour 3"} <= found, "keys in other buckets are kept"
    world.crash()
    world.start()
    world.settle()
    assert world.is_active(), "the remaining data was stored in its place: nothing has to be accepted twice"
    assert names(world) == found


def test_43_a_key_that_was_lost_with_its_bucket_is_found_again_with_its_next_sample(world: World) -> None:
    first = run_and_crash(world)
    damage(world, first + 1, "all missing")
    world.log.delete_before(6)
    world.start(accepted=Accepted(index_loss=True))
    produce_everywhere(world, "hour 1", 2.0)
    world.pass_hours(1)
    samples = world.found()
    assert all(len(samples[metric, "hour 1"]) == 2 for metric, name in samples if name == "hour 1")


def run_and_lose_keys(world: World) -> int:
    """A shard with keys that only its second index bucket has, and of which Kafka has no record. Returns the first
    bucket.
    """
    world.start()
    first = world.running.bucket
    for hour in range(4):
        produce_everywhere(world, "always")
        if hour:
            produce_everywhere(world, "since hour 1", float(hour))
        world.pass_hours(1)
    world.crash()
    world.log.delete_before(len(world.produced))
    return first


# Every hour of the world begins at ten minutes past.
IN_HOUR_1 = "12 series with 12 samples between 1970-02-11T17:10:00Z and 1970-02-11T17:10:00Z"
SINCE_HOUR_1 = "12 series with 36 samples between 1970-02-11T17:10:00Z and 1970-02-11T19:10:00Z"


@pytest.mark.parametrize("change", ["all missing", "records missing"])
def test_43_series_whose_keys_are_lost_are_counted_by_the_hashes_in_segments_before_the_loss_is_accepted(
    world: World, change: str
) -> None:
    first = run_and_lose_keys(world)
    damage(world, first + 1, change)
    with pytest.raises(IndexBucketLost, match=f"In its segments {IN_HOUR_1} have no key in the readable part"):
        world.start()
    (finding,) = findings_of(world)
    assert (finding.kind, finding.bucket) == (FindingKind.INDEX_DAMAGED, first + 1)
    assert f"In its segments {IN_HOUR_1} have no key" in finding.what


def test_43_keys_that_are_left_of_a_damaged_bucket_are_not_counted_as_lost(world: World) -> None:
    first = run_and_lose_keys(world)
    damage(world, first + 1, "missing")
    with pytest.raises(IndexBucketLost, match="All series in its segments have a key"):
        world.start()
    (finding,) = findings_of(world)
    assert "All series in its segments have a key" in finding.what


@pytest.mark.parametrize("change", ["all missing", "records missing", "missing", "flipped bit"])
def test_43_an_accepted_loss_of_an_index_bucket_is_a_note_and_not_a_finding(world: World, change: str) -> None:
    first = run_and_lose_keys(world)
    damage(world, first + 1, change)
    world.start(accepted=Accepted(index_loss=True))
    world.settle()
    notes = assert_world_sound(world).notes
    (accepted,) = [
        note.what for note in notes if note.kind is NoteKind.INDEX_LOSS_ACCEPTED and "an operator" in note.what
    ]
    everywhere = [note.what for note in notes if note.kind is NoteKind.SERIES_WITHOUT_KEY]
    if change in ("missing", "flipped bit"):
        assert "All series in its segments have a key" in accepted
        assert not everywhere
    else:
        assert f"In its segments {IN_HOUR_1} have no key" in accepted
        assert everywhere[0].startswith(f"{SINCE_HOUR_1} in all segments have no key")


def test_43_samples_before_a_lost_start_are_not_a_finding(world: World) -> None:
    """Late samples lowered the start, which only the lost bucket recorded."""
    world.start()
    first = world.running.bucket
    for hour in range(4):
        now = world.clock.now_ms()
        produce_everywhere(world, "always")
        if hour:
            world.produce(*((metric, "always", now - 3 * HOUR, 2.0) for metric in METRICS))
        world.pass_hours(1)
    world.crash()
    world.log.delete_before(7)
    damage(world, first + 1, "records missing")
    world.start(accepted=Accepted(index_loss=True))
    world.settle()
    assert_world_sound(world)


def test_43_series_that_were_lost_no_longer_count_once_a_sample_has_named_them_again(world: World) -> None:
    first = run_and_lose_keys(world)
    damage(world, first + 1, "all missing")
    world.start(accepted=Accepted(index_loss=True))
    produce_everywhere(world, "since hour 1", 5.0)
    world.pass_hours(1)
    found = assert_world_sound(world)
    assert NoteKind.SERIES_WITHOUT_KEY not in note_kinds(found)
    assert all(len(samples) == 4 for (_, name), samples in world.found().items() if name != "always")


def test_43_all_damaged_index_buckets_are_named_and_a_series_counts_once(world: World) -> None:
    first = run_and_lose_keys(world)
    for bucket in (first + 1, first + 2, first + 3):
        damage(world, bucket, "all missing")
    message = f"3 index buckets from {first + 1} to {first + 3} are damaged. In the segments of the newest 3 of them"
    with pytest.raises(IndexBucketLost, match=f"{message} {SINCE_HOUR_1} have no key"):
        world.start()


def test_43_a_start_reads_only_a_limited_number_of_segments(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_and_lose_keys(world)
    for bucket in (first + 1, first + 2, first + 3):
        damage(world, bucket, "all missing")
    # Those of one bucket: one segment per group.
    monkeypatch.setattr(index_loss, "MAX_SEGMENTS", 2 * world.options.groups - 1)
    with pytest.raises(IndexBucketLost, match="the segments of the newest 1 of them 12 series with 12 samples"):
        world.start()


def test_43_keys_of_the_local_copy_are_not_counted_as_lost(world: World) -> None:
    first = run_and_lose_keys(world)
    world.start()
    keys = world.running.index.columns.rows
    copy = CutSnapshot(first + 1, 24, HOUR, keys.take(keys.present()), {})
    world.crash()
    damage(world, first + 2, "all missing")
    damage(world, first + 1, "all missing")
    parts, process = world.parts(), world.machine.process()
    ownership = take_shard(world.store, world.options.shard, world.log.topic_id(), world.clock, process)
    view = read_manifest(parts.store, ownership, world.options.groups, world.clock.now_ms())
    repair = IndexRepair(parts, ownership, view, Accepted(), lambda: None, copy)
    row = index_row(world, first + 2)
    assert row.index is not None
    with pytest.raises(IndexBucketLost, match=r"can't be read\. All series in its segments have a key"):
        repair.read(row, row.index, ())


def test_43_a_start_that_counts_what_is_lost_can_be_stopped(world: World) -> None:
    first = run_and_lose_keys(world)
    damage(world, first + 1, "all missing")
    calls = 0

    def stopping() -> bool:
        nonlocal calls
        calls += 1
        return calls > 8

    with pytest.raises(StartStopped):
        Shard.start(world.parts(), world.status, stopping=stopping)


def test_42_a_shard_whose_manifest_has_expired_is_not_a_first_start(make_world: Callable[..., World]) -> None:
    world = make_world()
    run_and_crash(world)
    # Longer than the lifetime of all rows: the store has deleted them.
    world.pass_time(world.options.row_lifetime + 10 * HOUR)
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


def test_a_log_that_was_truncated_and_refilled_is_refused_until_accepted(world: World) -> None:
    """As after an unclean leader election: all offsets exist, but with different records."""
    run_and_crash(world)
    entries = world.log._partition.entries
    for entry in entries[-3:]:
        entry.value = b"another record"
    with pytest.raises(LogMismatch, match="a different record at offset 7 than the one that was read there"):
        world.start()
    world.start(accepted=Accepted(another_topic=True))
    world.settle()
    assert world.is_active()


def test_a_log_whose_last_read_record_has_a_different_time_is_a_different_log(world: World) -> None:
    run_and_crash(world)
    world.log._partition.entries[-1].time += 1
    with pytest.raises(LogMismatch):
        world.start()


def test_an_equal_record_with_a_different_leader_epoch_is_a_different_record(world: World) -> None:
    """An idle sender repeats the same samples, and producers set the times."""
    run_and_crash(world)
    last = world.log._partition.entries[-1]
    last.leader_epoch += 1
    with pytest.raises(LogMismatch, match="a different record at offset 7"):
        world.start()
    last.leader_epoch = -1  # As in a log without epochs.
    world.start()
    world.settle()
    assert world.is_active()


def test_a_log_that_no_longer_has_the_record_is_not_compared(world: World) -> None:
    run_and_crash(world)
    world.log._partition.entries[-1].value = b"another record"
    world.log.delete_before(8)
    world.start()
    world.settle()
    assert world.is_active()
