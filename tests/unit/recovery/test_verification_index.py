"""There is one fault in index buckets, or between them and segments, and exactly that is found."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from strandline.index.documents import encode_part_key
from strandline.index.part_columns import LIVE
from strandline.recovery.verification.findings import FindingKind, NoteKind
from strandline.recovery.verification.shard import Scope
from support.shard_world import HOUR, METRICS, World, other_group, produce_everywhere
from support.verifying import (
    Contents,
    Damage,
    assert_world_sound,
    copy_of,
    findings_of,
    note_kinds,
    only_finding,
    verified,
)

pytestmark = pytest.mark.unit

FIRST = 1_000
ALWAYS, SOMETIMES, RETURNS = ("metric_1", "always"), ("metric_1", "sometimes"), ("metric_1", "returns")


def hour_of(world: World, *names: str) -> None:
    for name in names:
        produce_everywhere(world, name, 1.0)
    world.pass_hours(1)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Keys that always have samples, keys that end, and keys that were purged and returned; and a crash."""
    with closing(World(tmp_path_factory.mktemp("sound"))) as made:
        made.start()
        hour_of(made, "always", "returns")
        hour_of(made, "always", "sometimes")
        hour_of(made, "always")
        made.crash()
        made.start()
        for _ in range(5):
            hour_of(made, "always")
        hour_of(made, "always", "returns")
        made.crash()
        assert_world_sound(made)
        yield made


@pytest.fixture
def world(sound: World, tmp_path: Path) -> Iterator[World]:
    with closing(copy_of(sound, tmp_path)) as copied:
        yield copied


@pytest.fixture
def damage(world: World) -> Damage:
    return Damage(world)


def rewritten(damage: Damage, bucket: int, change: Callable[[Contents], None]) -> None:
    damage.rewrite_index(bucket, change)


def test_an_index_bucket_that_is_written_again_unchanged_is_sound(world: World, damage: Damage) -> None:
    """This shows that the tests below find what they change."""
    for row in world.manifest().groups:
        if row.index is not None:
            rewritten(damage, row.bucket, lambda _: None)
    assert_world_sound(world)


def test_a_row_of_an_index_bucket_is_missing(world: World, damage: Damage) -> None:
    damage.execute("DELETE FROM index_buckets WHERE bucket = ? AND seq = 1", FIRST + 1)
    found = only_finding(world, FindingKind.INDEX_DAMAGED)
    assert found.bucket == FIRST + 1
    assert "has 2 rows, but 3 were written" in found.what


def test_a_byte_of_an_index_bucket_is_changed(world: World, damage: Damage) -> None:
    other = "CAST(substr(data, 1, 40) || x'00' || substr(data, 42) AS BLOB)"
    damage.execute(f"UPDATE index_buckets SET data = {other} WHERE bucket = ? AND seq = 1", FIRST + 1)  # noqa: S608
    found = only_finding(world, FindingKind.INDEX_DAMAGED)
    assert f"row 1 of index bucket {FIRST + 1} is damaged" in found.what


def test_another_checksum_of_an_index_bucket(world: World, damage: Damage) -> None:
    row = damage.index_row(FIRST + 3)
    damage.row(row.bucket, row.group, index_checksum=bytes(16))
    found = only_finding(world, FindingKind.INDEX_DAMAGED)
    assert "not those that its manifest row references" in found.what


def test_checks_that_need_a_damaged_index_bucket_are_skipped_with_a_note(world: World, damage: Damage) -> None:
    row = damage.index_row(FIRST)
    damage.row(row.bucket, row.group, index_checksum=bytes(16))
    group = other_group(world)
    damage.row(FIRST, group, checksum=bytes(16))
    options = world.options
    found = verified(world.sqlite, options.shard, options.groups, options.policy, clock=world.clock)
    assert [finding.kind for finding in found.findings] == [FindingKind.INDEX_DAMAGED, FindingKind.SEGMENT_CHECKSUM]
    assert note_kinds(found) == {NoteKind.NOT_COMPARED}


def test_a_key_with_another_hash_than_its_labels_have(world: World, damage: Damage) -> None:
    def change(contents: Contents) -> None:
        record = contents.records[contents.id_of(SOMETIMES)]
        record.key_hash = (record.key_hash[0] ^ 1, record.key_hash[1])

    rewritten(damage, FIRST + 1, change)
    found = only_finding(world, FindingKind.KEY_HASH)
    assert 'metric_1{name="sometimes"}' in found.what
    assert ": 1, the first is that of" in found.what


@pytest.mark.parametrize(
    "part_key",
    [
        b"",
        b"\x01",
        b"\x01\x00a",
        b"\x01\x00a\x05\x00b",
        b"\x01\x00a\x00\x00",
        b"\x00\x00\x01\x00b",
        encode_part_key({"b": "1"}) + encode_part_key({"a": "1"}),
        encode_part_key({"a": "1"}) + encode_part_key({"a": "2"}),
        encode_part_key({"ab": "1"}) + encode_part_key({"a": "2"}),
    ],
)
def test_a_part_key_that_is_not_a_label_set(world: World, damage: Damage, part_key: bytes) -> None:
    def change(contents: Contents) -> None:
        contents.records[contents.id_of(SOMETIMES)].part_key = part_key

    rewritten(damage, FIRST + 1, change)
    assert only_finding(world, FindingKind.KEY_MALFORMED).bucket == FIRST + 1


def test_a_record_that_ends_before_it_starts(world: World, damage: Damage) -> None:
    def change(contents: Contents) -> None:
        record = contents.records[contents.id_of(SOMETIMES)]
        record.start = record.end + 1

    rewritten(damage, FIRST + 2, change)
    found = findings_of(world, Scope(samples=False))
    assert [finding.kind for finding in found] == [FindingKind.RECORD_TIMES]
    assert 'metric_1{name="sometimes"}' in found[0].what


def test_an_id_with_two_keys(world: World, damage: Damage) -> None:
    def change(contents: Contents) -> None:
        part_id_of_key = contents.id_of(SOMETIMES)
        record = contents.records.pop(part_id_of_key)
        contents.records[damage_id] = record
        contents.active[damage_id] = contents.active.pop(part_id_of_key)

    damage_id = Contents(damage.index_bucket(FIRST)).id_of(RETURNS)
    rewritten(damage, FIRST + 1, change)
    found = only_finding(world, FindingKind.ID_WITH_TWO_KEYS)
    assert f"part id {damage_id} is that of two keys" in found.what
    assert 'name="sometimes"' in found.what
    assert 'name="returns"' in found.what


def test_a_key_that_gets_a_second_id_while_it_lives(world: World, damage: Damage) -> None:
    first = Contents(damage.index_bucket(FIRST)).id_of(ALWAYS)
    new = world.manifest().state.next_part_id

    def change(contents: Contents) -> None:
        old = contents.id_of(ALWAYS)
        contents.records[new] = contents.records.pop(old)
        contents.active[new] = contents.active.pop(old)

    rolled_over = next(
        bucket for bucket in range(FIRST + 1, FIRST + 9) if first in Contents(damage.index_bucket(bucket)).records
    )
    rewritten(damage, rolled_over, change)
    damage.execute("UPDATE shards SET next_part_id = ?", new + 1)
    found = only_finding(world, FindingKind.KEY_WITH_TWO_IDS)
    assert 'metric_1{name="always"}' in found.what
    assert f"part id {new}" in found.what
    assert f"was part id {first} before" in found.what


def test_a_key_that_resumed_before_it_was_purged_and_got_a_second_id(world: World, damage: Damage) -> None:
    """As after a purge one bucket too early: the key that returned had ended later."""
    bucket = next(
        bucket
        for bucket in range(FIRST + 1, FIRST + 9)
        if RETURNS in {record.name for record in Contents(damage.index_bucket(bucket)).records.values()}
    )

    def change(contents: Contents) -> None:
        contents.records[contents.id_of(RETURNS)].end += 3 * HOUR

    assert_world_sound(world)
    rewritten(damage, bucket, change)
    assert 'metric_1{name="returns"}' in only_finding(world, FindingKind.KEY_WITH_TWO_IDS).what


def test_an_old_id_that_is_written_again_beside_the_new_one(world: World, damage: Damage) -> None:
    """The purge was correct, but after it no newer record may have the id."""
    first = Contents(damage.index_bucket(FIRST))
    old = first.id_of(RETURNS)
    ended = Contents(damage.index_bucket(FIRST + 1)).records[old]

    def change(contents: Contents) -> None:
        contents.records[old] = ended

    rewritten(damage, FIRST + 8, change)
    assert f"was part id {old} before" in only_finding(world, FindingKind.KEY_WITH_TWO_IDS).what


def test_an_active_id_without_a_record(world: World, damage: Damage) -> None:
    unused = world.manifest().state.next_part_id

    def change(contents: Contents) -> None:
        contents.active[unused] = 0

    damage.execute("UPDATE shards SET next_part_id = ?", unused + 1)
    rewritten(damage, FIRST + 4, change)
    found = only_finding(world, FindingKind.ACTIVE_UNKNOWN)
    assert found.bucket == FIRST + 4
    assert f": 1, the first is {unused}" in found.what


def test_an_active_id_is_dropped(world: World, damage: Damage) -> None:
    def change(contents: Contents) -> None:
        del contents.active[always]

    always = Contents(damage.index_bucket(FIRST)).id_of(ALWAYS)
    rewritten(damage, FIRST + 3, change)
    found = only_finding(world, FindingKind.SAMPLES_NOT_ACTIVE)
    assert found.bucket == FIRST + 3
    assert 'metric_1{name="always"}' in found.what


@pytest.mark.parametrize("bucket", [FIRST, FIRST + 8])
def test_an_active_id_is_dropped_in_the_bucket_in_which_the_key_began(
    world: World, damage: Damage, bucket: int
) -> None:
    rewritten(damage, bucket, lambda contents: contents.active.__delitem__(contents.id_of(RETURNS)))
    assert 'metric_1{name="returns"}' in only_finding(world, FindingKind.SAMPLES_NOT_ACTIVE).what


def test_an_active_id_is_dropped_if_its_record_in_the_same_bucket_has_ended(world: World, damage: Damage) -> None:
    def change(contents: Contents) -> None:
        returns = contents.id_of(RETURNS)
        contents.records[returns].end = contents.active.pop(returns)

    rewritten(damage, FIRST, change)
    assert 'metric_1{name="returns"}' in only_finding(world, FindingKind.SAMPLES_NOT_ACTIVE).what


@pytest.mark.parametrize("samples", [True, False])
def test_an_active_id_without_a_sample(world: World, damage: Damage, *, samples: bool) -> None:
    sometimes = Contents(damage.index_bucket(FIRST + 1)).id_of(SOMETIMES)

    def change(contents: Contents) -> None:
        contents.active[sometimes] = LIVE

    rewritten(damage, FIRST + 4, change)
    found = only_finding(world, FindingKind.ACTIVE_WITHOUT_SAMPLES, Scope(samples=samples))
    assert found.bucket == FIRST + 4
    assert ": 1, the first is" in found.what
    assert 'metric_1{name="sometimes"}' in found.what


def test_a_greatest_time_that_is_before_a_sample(world: World, damage: Damage) -> None:
    always = Contents(damage.index_bucket(FIRST)).id_of(ALWAYS)

    def change(contents: Contents) -> None:
        contents.active[always] -= 1

    rewritten(damage, FIRST + 4, change)
    found = only_finding(world, FindingKind.ACTIVE_TIMES)
    assert "a later sample than their recorded end" in found.what
    assert findings_of(world, Scope(samples=False)) == ()


def test_a_start_that_is_after_a_sample(world: World, damage: Damage) -> None:
    def change(contents: Contents) -> None:
        contents.records[contents.id_of(SOMETIMES)].start += 1

    rewritten(damage, FIRST + 1, change)
    assert_world_sound(world)  # Newer records count: the one with its end also contains the start.

    def change_both(contents: Contents) -> None:
        change(contents)
        contents.records[contents.id_of(SOMETIMES)].end += 1

    rewritten(damage, FIRST + 2, change_both)
    found = only_finding(world, FindingKind.ACTIVE_TIMES)
    assert found.bucket == FIRST + 1
    assert "an earlier sample than their recorded start" in found.what


def test_a_record_that_was_lost_completely_leaves_its_active_ids(world: World, damage: Damage) -> None:
    for bucket in (FIRST + 1, FIRST + 2):
        rewritten(damage, bucket, lambda contents: contents.records.pop(contents.id_of(SOMETIMES)))
    found = findings_of(world)
    assert [(finding.kind, finding.bucket) for finding in found] == [(FindingKind.ACTIVE_UNKNOWN, FIRST + 1)]


def test_every_group_has_samples(world: World) -> None:
    """The worlds of these tests have samples in each group; otherwise they would test less than intended."""
    assert all(row.samples for row in world.manifest().groups)
    assert len(METRICS) > world.options.groups
