"""There is one fault in the manifest, and exactly that is found."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from strandline.recovery.checkpoints import designated_group
from strandline.recovery.verification.findings import FindingKind
from support.shard_world import HOUR, World, other_group, produce_everywhere
from support.verifying import Damage, assert_world_sound, copy_of, findings_of, only_finding

pytestmark = pytest.mark.unit

FIRST = 1_000  # The bucket of the first record.


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Five hours with a crash among them, all stored."""
    with closing(World(tmp_path_factory.mktemp("sound"))) as made:
        made.start()
        for hour in range(5):
            produce_everywhere(made, "a" if hour < 3 else "b", float(hour))
            made.pass_hours(1)
            if hour == 2:
                made.crash()
                made.start()
        made.crash()
        assert_world_sound(made)
        assert {row.bucket for row in made.manifest().groups} == set(range(FIRST, FIRST + 5))
        yield made


@pytest.fixture
def world(sound: World, tmp_path: Path) -> Iterator[World]:
    """A separate one for each test."""
    with closing(copy_of(sound, tmp_path)) as copied:
        yield copied


@pytest.fixture
def damage(world: World) -> Damage:
    return Damage(world)


def test_a_cut_that_is_missing_between_others(world: World, damage: Damage) -> None:
    damage.execute("DELETE FROM cuts WHERE bucket = ?", FIRST + 2)
    found = only_finding(world, FindingKind.CUTS_TORN)
    assert found.bucket == FIRST + 3
    assert f"bucket {FIRST + 1}, ends at offset 2" in found.what
    assert "starts at offset 3" in found.what


def test_a_cut_that_begins_elsewhere_than_the_one_before_ends(world: World, damage: Damage) -> None:
    damage.execute("UPDATE cuts SET start_offset = 1 WHERE bucket = ?", FIRST + 2)
    assert only_finding(world, FindingKind.CUTS_TORN).bucket == FIRST + 2


def test_a_cut_that_ends_before_it_begins(world: World, damage: Damage) -> None:
    damage.execute("UPDATE cuts SET end_offset = 3 WHERE bucket = ?", FIRST + 4)
    found = only_finding(world, FindingKind.CUTS_TORN)
    assert found.what == "its cut starts at offset 4 but ends at 3"


def test_a_loss_that_lies_outside_of_its_cut(world: World, damage: Damage) -> None:
    damage.execute("UPDATE cuts SET lost_to = 9 WHERE bucket = ?", FIRST + 1)
    assert "up to 9" in only_finding(world, FindingKind.CUTS_TORN).what


def test_the_newest_cut_is_missing_and_its_rows_have_no_cut(world: World, damage: Damage) -> None:
    damage.execute("DELETE FROM cuts WHERE bucket = ?", FIRST + 4)
    found = only_finding(world, FindingKind.ROW_MISPLACED)
    assert (found.bucket, found.what) == (FIRST + 4, "there is no cut row, but groups 0, 1, 2, 3 have rows")


def test_the_oldest_cuts_are_missing_before_their_expiry(world: World, damage: Damage) -> None:
    damage.execute("DELETE FROM cuts WHERE bucket <= ?", FIRST)
    assert only_finding(world, FindingKind.ROW_MISPLACED).bucket == FIRST


def test_rows_in_a_reset(world: World, damage: Damage) -> None:
    damage.execute("UPDATE cuts SET reset = 1 WHERE bucket = ?", FIRST + 4)
    found = only_finding(world, FindingKind.ROW_MISPLACED)
    assert "a reset and not a bucket" in found.what


def test_a_row_of_a_group_that_the_dataset_does_not_have(world: World, damage: Damage) -> None:
    group = other_group(world)
    damage.execute("UPDATE flush_groups SET flush_group = 7 WHERE bucket = ? AND flush_group = ?", FIRST + 4, group)
    found = findings_of(world)
    assert found[0].kind is FindingKind.ROW_MISPLACED
    assert "group 7" in found[0].what
    assert "4 groups" in found[0].what


def test_a_row_is_missing_before_others(world: World, damage: Damage) -> None:
    group = other_group(world)
    damage.execute("DELETE FROM flush_groups WHERE bucket = ? AND flush_group = ?", FIRST + 1, group)
    found = only_finding(world, FindingKind.ROW_BEHIND_HOLE)
    assert (found.bucket, found.group) == (FIRST + 1, group)
    assert f"for bucket {FIRST + 2}" in found.what


def test_a_row_is_superseded_before_others(world: World, damage: Damage) -> None:
    damage.row(FIRST + 1, other_group(world), superseded=1)
    assert only_finding(world, FindingKind.ROW_BEHIND_HOLE).bucket == FIRST + 1


def test_a_cut_that_expires_before_an_older_one(world: World, damage: Damage) -> None:
    damage.execute("UPDATE cuts SET expires = expires - ? WHERE bucket = ?", 2 * HOUR, FIRST + 3)
    found = only_finding(world, FindingKind.ROW_EXPIRY)
    assert found.bucket == FIRST + 3
    assert f"before that of bucket {FIRST + 2}" in found.what


def test_a_row_that_expires_before_an_older_one_of_its_group(world: World, damage: Damage) -> None:
    group = other_group(world)
    before = world.rows(FIRST + 2)[group].expires
    damage.row(FIRST + 3, group, expires=before - 1)
    found = only_finding(world, FindingKind.ROW_EXPIRY)
    assert (found.bucket, found.group) == (FIRST + 3, group)
    assert f"before that of bucket {FIRST + 2}" in found.what


def test_a_row_that_expires_before_its_cut(world: World, damage: Damage) -> None:
    group = other_group(world)
    (cut,) = [cut for cut in world.manifest().cuts if cut.bucket == FIRST]
    damage.row(FIRST, group, expires=cut.expires - 1)
    assert "before its bucket's cut" in only_finding(world, FindingKind.ROW_EXPIRY).what


def test_a_row_that_expires_before_its_data(world: World, damage: Damage) -> None:
    group = other_group(world)
    damage.row(FIRST, group, data_expires=world.rows(FIRST)[group].expires + 1)
    assert "before the data that it references" in only_finding(world, FindingKind.ROW_EXPIRY).what


def test_a_row_of_the_designated_group_without_an_index_bucket(world: World, damage: Damage) -> None:
    designated = designated_group(world.options.shard, world.options.groups)
    damage.row(FIRST + 2, designated, index_rows=None, index_checksum=None, index_attempt=None)
    found = only_finding(world, FindingKind.INDEX_MISPLACED)
    assert (found.bucket, found.group) == (FIRST + 2, designated)


def test_a_row_of_another_group_with_an_index_bucket(world: World, damage: Damage) -> None:
    group = other_group(world)
    damage.row(FIRST + 2, group, index_rows=1, index_checksum=b"1", index_attempt="a")
    found = only_finding(world, FindingKind.INDEX_MISPLACED)
    assert (found.bucket, found.group) == (FIRST + 2, group)


def test_a_next_part_id_that_is_already_assigned(world: World, damage: Damage) -> None:
    given = world.manifest().state.next_part_id - 1
    damage.execute("UPDATE shards SET next_part_id = ?", given)
    found = only_finding(world, FindingKind.NEXT_PART_ID)
    assert found.what == f"part id {given} is in use, but the next one is recorded as {given}"
