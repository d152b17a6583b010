"""Whatever happens to a shard, its stored data is consistent, and harmless differences are reported as notes."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.index.sample_limits import SampleLimits
from strandline.node.shard.options import ReplayMode
from strandline.recovery.checkpoints import EXPIRY_SKEW_MS, designated_group
from strandline.recovery.offset_policy import Accepted
from strandline.recovery.rewinding import ToBucket
from strandline.recovery.verification.findings import NoteKind
from strandline.recovery.verification.layout import ShardLayout
from strandline.recovery.verification.shard import Scope, verify_shard
from support.rewound_worlds import rewind_world, stop_shard
from support.shard_world import (
    HOUR,
    METRICS,
    MINUTE,
    POLICY,
    StoreCall,
    World,
    group_fails,
    other_group,
    produce_everywhere,
)
from support.verifying import Damage, assert_sound, assert_world_sound, note_kinds, with_policy

pytestmark = pytest.mark.unit


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with closing(World(tmp_path)) as made:
        made.start()
        yield made


def live(world: World, hours: int, name: str = "a") -> None:
    for _ in range(hours):
        produce_everywhere(world, name, float(world.clock.now_ms()))
        world.pass_hours(1)


def test_a_shard_that_was_started_and_has_read_nothing_is_sound(world: World) -> None:
    found = assert_world_sound(world)
    assert found.counts.buckets == found.counts.samples == 0


def test_everything_that_is_stored_is_counted(world: World) -> None:
    live(world, 3)
    world.crash()
    world.start()
    live(world, 1, "b")
    counts = assert_world_sound(world).counts
    rows = world.manifest().groups
    assert (counts.buckets, counts.groups) == (4, 16)
    assert counts.samples == sum(row.samples for row in rows) == 4 * len(METRICS)
    assert counts.series == sum(row.series for row in rows)
    assert counts.segments == sum(row.segments for row in rows)
    assert (counts.keys, counts.index_buckets) == (2 * len(METRICS), 4)
    assert counts.bytes == sum(len(segment.data) for row in rows for segment in Damage(world).segments_of(row))


def test_progress_never_decreases_and_ends_with_all_pieces_done(world: World) -> None:
    live(world, 3)
    reported: list[tuple[int, int]] = []
    options = world.options
    verify_shard(
        world.sqlite,
        world.manifest(),
        ShardLayout(options.shard, options.groups, options.policy),
        world.clock,
        on_progress=lambda done, of: reported.append((done, of)),
    )
    assert reported == [(done, 3 + 12) for done in range(1, 16)]


def test_keys_that_end_roll_over_are_purged_and_return_are_sound(world: World) -> None:
    live(world, 1, "short")
    live(world, 7, "long")
    live(world, 1, "short")
    found = assert_world_sound(world)
    buckets = [Damage(world).index_bucket(row.bucket) for row in world.manifest().groups if row.index is not None]
    ids = {part_id for stored in buckets for record in stored.records for part_id in record.keys.part_ids.tolist()}
    assert found.counts.keys == 2 * len(METRICS)
    assert len(ids) == 3 * len(METRICS), "those that were purged and returned have a second id"
    world.crash()
    world.start()
    world.settle()
    assert_world_sound(world)


def test_a_shard_whose_oldest_rows_and_data_have_expired_is_sound(tmp_path: Path) -> None:
    with closing(World(tmp_path, history=0)) as world:
        world.start()
        for hour in range(16):
            live(world, 1, f"of {hour // 4}")
            assert_world_sound(world)
        assert (
            any(row.data_expires <= world.clock.now_ms() for row in world.manifest().groups)
            or len(world.manifest().cuts) < 17
        )


def test_a_stuck_group_does_not_affect_the_verification_of_others(world: World) -> None:
    stuck = other_group(world)
    live(world, 1)
    world.store.before = group_fails(stuck)
    live(world, 2)
    found = assert_world_sound(world)
    assert found.counts.groups == 4 + 3 + 3
    world.crash()
    world.start()
    world.settle()
    assert assert_world_sound(world).counts.groups == 12


def test_a_rewind_is_sound_before_it_is_replayed_in_the_middle_of_it_and_afterwards(world: World) -> None:
    live(world, 2)
    live(world, 3, "b")
    stop_shard(world)
    rewind_world(world, ToBucket(world.manifest().cuts[0].bucket - 2))
    found = assert_world_sound(world)
    assert note_kinds(found) == {NoteKind.SUPERSEDED}
    assert found.counts.buckets == 2
    world.start()
    world.read_all()
    for _ in range(60):
        world.running.flusher.step()
        assert_world_sound(world)
    world.settle()
    assert note_kinds(assert_world_sound(world)) == set()


def test_half_a_rewind_is_sound(world: World) -> None:
    live(world, 4)
    stop_shard(world)
    rewind_world(world, ToBucket(world.manifest().cuts[0].bucket))
    world.start()
    live(world, 1)
    assert_world_sound(world)


def test_a_purged_key_that_returned_within_what_was_rewound_is_sound(world: World) -> None:
    """Its new id is then written into a bucket in which the old one was not purged yet."""
    live(world, 1, "returns")
    live(world, 7, "always")
    now = world.clock.now_ms()
    world.produce(
        *((metric, "returns", now, 1.0) for metric in METRICS), *((metric, "always", now, 1.0) for metric in METRICS)
    )
    world.pass_hours(1)
    stop_shard(world)
    rewind_world(world, ToBucket(world.manifest().cuts[0].bucket - 5))
    assert_world_sound(world)
    world.start()
    world.settle()
    assert_world_sound(world)


def test_a_recreated_topic_leaves_both_sides_of_the_reset_consistent(world: World) -> None:
    live(world, 2)
    world.store.before = group_fails(other_group(world))
    live(world, 1, "stuck for ever")
    world.crash()
    world.log.recreate()
    produce_everywhere(world, "new")
    world.start(accepted=Accepted(another_topic=True))
    live(world, 2, "new")
    assert assert_world_sound(world).counts.buckets == 2 + 1 + 1, "the reset has replaced one"


@pytest.mark.parametrize("is_designated", [False, True])
def test_an_accepted_loss_is_a_note(world: World, *, is_designated: bool) -> None:
    live(world, 1)
    for name in "123":
        produce_everywhere(world, name)
    others = range(world.options.groups)
    designated = designated_group(world.options.shard, world.options.groups)
    stuck = designated if is_designated else next(group for group in others if group != designated)
    world.store.before = group_fails(stuck)
    world.pass_hours(1)
    world.crash()
    world.log.delete_before(3)
    world.start(accepted=Accepted(loss_to=3))
    world.settle()
    assert note_kinds(assert_world_sound(world)) >= {NoteKind.LOSS_ACCEPTED, NoteKind.NOT_COMPARED} - (
        {NoteKind.NOT_COMPARED} if is_designated else set()
    )


def test_samples_of_a_lossy_bucket_missing_from_the_index_are_a_note(world: World) -> None:
    """Other groups were stored with all records, the index bucket only after some had been lost."""
    live(world, 1, "both")
    live(world, 1, "lost")
    now = world.clock.now_ms()
    world.produce(*((metric, "both", now + 20 * MINUTE, 1.0) for metric in METRICS))
    world.produce(*((metric, "lost", now, 1.0) for metric in METRICS))
    world.produce(*((metric, "both", now, 1.0) for metric in METRICS))
    world.store.before = group_fails(designated_group(world.options.shard, world.options.groups))
    world.pass_hours(1)
    world.crash()
    world.log.delete_before(4)
    world.start(accepted=Accepted(loss_to=4))
    world.settle()
    found = assert_world_sound(world)
    assert note_kinds(found) == {NoteKind.LOSS_ACCEPTED, NoteKind.NOT_COMPARED}
    assert all(
        "the records were lost before" in note.what for note in found.notes if note.kind is NoteKind.NOT_COMPARED
    )


def test_samples_of_series_that_the_limit_refused_are_a_note(tmp_path: Path) -> None:
    with closing(World(tmp_path, series_limit=len(METRICS))) as world:
        world.start()
        live(world, 1)
        stuck = other_group(world)
        world.store.before = group_fails(stuck)
        live(world, 1, "a")
        produce_everywhere(world, "refused")
        world.pass_hours(1)
        world.crash()
        world.start()
        world.settle()
        found = assert_world_sound(world)
        refused = [note for note in found.notes if note.kind is NoteKind.REFUSED_SERIES]
        assert [note.group for note in refused] == [stuck]
        # Below the limit they are assigned ids, but the earlier segments still have series without a key.
        world.crash()
        world.options = replace(world.options, series_limit=1000)
        world.start()
        produce_everywhere(world, "refused")
        live(world, 1)
        found = assert_world_sound(world)
        assert [note.group for note in found.notes if note.kind is NoteKind.REFUSED_SERIES] == [stuck]


@pytest.mark.parametrize("retentions", [(2, 20, 5), (20, 2, 5), (5, 2, 20)])
def test_another_retention_changes_nothing_about_what_is_stored(world: World, retentions: tuple[int, ...]) -> None:
    world.options = replace(world.options, history=48 * HOUR)
    for retention in retentions:
        world.crash()
        with_policy(world, retention=retention * HOUR)
        world.start()
        live(world, 1, "comes and goes")
        live(world, 4, "now and then")
        live(world, 3, f"under {retention} h")
        live(world, 1, "now and then")
        assert_world_sound(world)
    world.crash()
    for retention in retentions:
        with_policy(world, retention=retention * HOUR)
        assert_world_sound(world)


def test_data_that_expires_while_it_is_read_is_not_missed(world: World) -> None:
    live(world, 11)
    world.crash()
    remaining = [row for row in world.manifest().groups if row.data_expires > world.clock.now_ms()]
    oldest = remaining[-1]
    world.pass_time(oldest.data_expires - EXPIRY_SKEW_MS - world.clock.now_ms() - 1)
    read = []

    def goes_on(call: StoreCall) -> None:
        if call.name in {"segments", "index_bucket"}:
            read.append(call.arguments[0].bucket)
            world.pass_time(1)

    world.store.before = goes_on
    options = world.options
    found = assert_sound(world.store, options.shard, options.groups, options.policy, clock=world.clock)
    assert oldest.bucket in read
    assert found.counts.buckets == len({row.bucket for row in remaining})


def test_samples_that_are_not_decompressed_are_counted_too(world: World) -> None:
    live(world, 2)
    world.produce(("metric_1", "a", world.clock.now_ms() - 3 * HOUR, 1.0))
    world.pass_time(MINUTE)
    live(world, 1)
    assert assert_world_sound(world, Scope(samples=False)).counts == assert_world_sound(world).counts


def test_a_key_that_ended_and_resumed_before_it_was_purged_keeps_its_id(world: World) -> None:
    live(world, 1, "pauses")
    live(world, POLICY.kept_buckets - 2, "always")
    live(world, 2, "pauses")
    assert assert_world_sound(world).counts.keys == 2 * len(METRICS)


def test_what_workers_of_a_replay_have_written_is_sound_at_every_step(world: World) -> None:
    live(world, 1)
    stuck = other_group(world)
    world.store.before = group_fails(stuck)
    live(world, 2, "below the index's checkpoint")
    world.crash()
    for name in ("b", "c", "b"):
        produce_everywhere(world, name)
        world.pass_time(HOUR)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    for _ in range(12):
        assert_world_sound(world)
        world.work(waves=1)
        world.pass_time(1_000)
        world.settle()
    assert world.is_active()
    found = assert_world_sound(world)
    assert found.counts.groups == 6 * world.options.groups
    rows = [row for row in world.manifest().groups if row.index is not None]
    assert any(row.index is not None and row.index.attempt != row.attempt for row in rows), "jobs have written segments"


def test_half_a_rewind_under_other_limits_is_not_compared_with_the_index_bucket_from_before(world: World) -> None:
    live(world, 1)
    world.produce(*((metric, "late", world.clock.now_ms() - 3 * HOUR, 1.0) for metric in METRICS))
    world.pass_hours(1)
    stop_shard(world)
    rewind_world(world, ToBucket(world.manifest().cuts[0].bucket))
    world.options = replace(world.options, sample_limits=SampleLimits(HOUR, None))
    world.start()
    world.store.before = group_fails(designated_group(world.options.shard, world.options.groups))
    world.settle()
    found = assert_world_sound(world)
    assert note_kinds(found) == {NoteKind.SUPERSEDED}
    assert found.counts.groups == 4 + 3


def test_an_active_key_whose_records_have_expired_before_is_a_note(tmp_path: Path) -> None:
    """Records that were rolled over under a shorter retention expire before the bitmaps from the longer one."""
    with closing(World(tmp_path, groups=1, history=48 * HOUR)) as world:
        for retention, hours in ((20, 12), (2, 3)):
            world.crash()
            with_policy(world, retention=retention * HOUR)
            world.start()
            for _ in range(hours):
                world.produce(("m", "ends", world.clock.now_ms(), 1.0), ("m", "goes on", world.clock.now_ms(), 1.0))
                world.pass_hours(1)
        kinds = set()
        for _ in range(15):
            world.produce(("m", "goes on", world.clock.now_ms(), 1.0))
            world.pass_hours(1)
            kinds |= note_kinds(assert_world_sound(world))
        assert kinds == {NoteKind.ACTIVE_EXPIRED, NoteKind.REFUSED_SERIES}
