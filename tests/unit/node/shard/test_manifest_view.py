"""The owner's view of its manifest."""

import threading
from dataclasses import replace
from typing import Any

import pytest

from strandline.node.shard import manifest_view
from strandline.node.shard.manifest_view import ManifestView
from strandline.recovery.checkpoints import Progress
from strandline.store.rows import CutRow, GroupRow, ManifestRows, ManifestWrite, ShardId
from support.manifest_rows import NEVER, SHARD, STATE, beginning, cut, manifest, row, rows_of

pytestmark = pytest.mark.unit


def view(cuts: list[CutRow], groups: list[GroupRow]) -> ManifestView:
    return ManifestView(SHARD, 2, manifest(cuts, groups))


def timed(bucket: int, group: int, least: int | None, greatest: int | None, **changes: Any) -> GroupRow:
    return replace(row(bucket, group), least_time=least, greatest_time=greatest, **changes)


def places(rows: list[GroupRow]) -> list[tuple[int, int]]:
    return [(row_of_either_kind.bucket, row_of_either_kind.group) for row_of_either_kind in rows]


@pytest.fixture
def stored() -> ManifestView:
    """Buckets 10 and 11 of two groups; the second group of bucket 11 is missing."""
    return view([beginning(9, 0), cut(10, 0, 100), cut(11, 100, 200)], [*rows_of(10, [0, 1]), row(11, 0)])


def test_rows_are_read_newest_bucket_first_and_groups_ascending(stored: ManifestView) -> None:
    rows = stored.rows()
    assert [row_of_either_kind.bucket for row_of_either_kind in rows.cuts] == [11, 10, 9]
    assert places(list(rows.groups)) == [(11, 0), (10, 0), (10, 1)]
    assert rows.state == STATE


def test_committed_rows_are_added_to_the_existing_ones(stored: ManifestView) -> None:
    stored.committed(ManifestWrite(present=0, cuts=(cut(12, 200, 250),), groups=(row(11, 1),)))
    rows = stored.rows()
    assert [row_of_either_kind.bucket for row_of_either_kind in rows.cuts] == [12, 11, 10, 9]
    assert places(list(rows.groups)) == [(11, 0), (11, 1), (10, 0), (10, 1)]


def test_a_row_that_is_written_again_replaces_the_old_one(stored: ManifestView) -> None:
    lost = replace(cut(10, 0, 100), lost_to=50)
    stored.committed(ManifestWrite(present=0, cuts=(lost,), groups=(row(10, 1, superseded=True),)))
    rows = stored.rows()
    assert rows.cuts[1] == lost
    assert rows.groups[2] == row(10, 1, superseded=True)
    assert len(rows.cuts) == len(rows.groups) == 3


def test_the_topic_changes_only_with_a_write_that_names_one(stored: ManifestView) -> None:
    stored.committed(ManifestWrite(present=0, cuts=(cut(12, 200, 250),)))
    assert stored.topic_id == "topic-1"
    stored.committed(ManifestWrite(present=0, topic_id="topic-2"))
    assert stored.topic_id == "topic-2"
    assert stored.rows().state == replace(STATE, topic_id="topic-2")


def test_the_next_part_id_is_read_from_the_manifest() -> None:
    rows = replace(manifest([], []), state=replace(STATE, next_part_id=77))
    assert ManifestView(SHARD, 2, rows).next_part_id == 77


def test_returned_rows_do_not_change_with_later_writes(stored: ManifestView) -> None:
    before = stored.rows()
    stored.committed(ManifestWrite(present=0, groups=(row(11, 1),)))
    stored.expire(NEVER)
    assert len(before.groups) == 3


def test_the_checkpoint_advances_with_commits(stored: ManifestView) -> None:
    assert stored.lowest_checkpoint == 100
    stored.committed(ManifestWrite(present=0, groups=(row(11, 1),)))
    assert stored.lowest_checkpoint == 200
    stored.committed(ManifestWrite(present=0, groups=(row(10, 0, superseded=True),)))
    assert stored.lowest_checkpoint == 0


def test_a_shard_that_was_never_read_has_no_progress_until_its_first_cut() -> None:
    empty = view([], [])
    assert empty.progress() is None
    assert empty.lowest_checkpoint == -1
    empty.committed(ManifestWrite(present=0, cuts=(beginning(9, 40),)))
    assert empty.lowest_checkpoint == 40


Computed = list[ManifestRows]


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Computed:
    """The rows for which the progress was computed, one entry for each computation."""
    computed_rows: Computed = []
    compute = manifest_view.progress

    def record(rows: ManifestRows, groups: int, shard: ShardId) -> Progress | None:
        computed_rows.append(rows)
        return compute(rows, groups, shard)

    monkeypatch.setattr(manifest_view, "progress", record)
    return computed_rows


def test_progress_is_computed_once_for_all_readers(stored: ManifestView, computed: Computed) -> None:
    first = stored.progress()
    assert stored.progress() is first
    assert stored.lowest_checkpoint == 100
    assert len(computed) == 1


def test_progress_is_computed_again_after_each_change(stored: ManifestView, computed: Computed) -> None:
    stored.progress()
    stored.committed(ManifestWrite(present=0, groups=(row(11, 1),)))
    assert stored.lowest_checkpoint == 200
    stored.expire(0)
    stored.progress()
    assert len(computed) == 3


def test_a_commit_during_the_computation_of_progress_counts_for_the_next_reader(
    stored: ManifestView, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute = manifest_view.progress

    def interrupted(rows: ManifestRows, groups: int, shard: ShardId) -> Progress | None:
        monkeypatch.setattr(manifest_view, "progress", compute)
        stored.committed(ManifestWrite(present=0, groups=(row(11, 1),)))
        return compute(rows, groups, shard)

    monkeypatch.setattr(manifest_view, "progress", interrupted)
    assert stored.lowest_checkpoint in {100, 200}
    assert stored.lowest_checkpoint == 200


def test_a_reader_never_gets_empty_progress_during_a_commit(stored: ManifestView) -> None:
    checkpoints: list[int] = []
    ended = threading.Event()

    def read_repeatedly() -> None:
        while not (checkpoints and ended.is_set()):
            checkpoints.append(stored.lowest_checkpoint)

    reader = threading.Thread(target=read_repeatedly)
    reader.start()
    try:
        for bucket in range(12, 200):
            write = ManifestWrite(present=0, cuts=(cut(bucket, 200, 200),), groups=tuple(rows_of(bucket, [0, 1])))
            stored.committed(write)
    finally:
        ended.set()
        reader.join(60)
    assert set(checkpoints) == {100}


def test_a_row_expires_no_sooner_than_any_existing_one() -> None:
    now = 1_000
    stored_rows = view([replace(cut(10, 0, 100), expires=5_000)], [replace(row(10, 0), expires=7_000)])
    assert stored_rows.row_expiry(now) == 7_000
    assert stored_rows.row_expiry(6_999) == 7_000
    assert stored_rows.row_expiry(7_001) == 7_001
    stored_rows.committed(ManifestWrite(present=0, cuts=(replace(cut(11, 100, 200), expires=9_000),)))
    assert stored_rows.row_expiry(now) == 9_000
    stored_rows.committed(ManifestWrite(present=0, groups=(replace(row(11, 0), expires=8_000),)))
    assert stored_rows.row_expiry(now) == 9_000, "the expiry never moves back"


def test_the_first_row_expires_at_the_requested_time() -> None:
    assert view([], []).row_expiry(1_234) == 1_234


def test_rows_are_left_out_from_the_time_at_which_they_expire() -> None:
    stored_rows = view(
        [replace(cut(10, 0, 100), expires=5_000), replace(cut(11, 100, 200), expires=6_000)],
        [replace(row(10, 0), expires=5_000), replace(row(11, 0), expires=6_000)],
    )
    stored_rows.expire(4_999)
    assert [row_of_either_kind.bucket for row_of_either_kind in stored_rows.rows().cuts] == [11, 10]
    stored_rows.expire(5_000)
    rows = stored_rows.rows()
    assert [row_of_either_kind.bucket for row_of_either_kind in rows.cuts] == [11]
    assert places(list(rows.groups)) == [(11, 0)]
    assert stored_rows.row_expiry(0) == 6_000


@pytest.mark.parametrize(
    ("first", "last", "found"),
    [
        (0, 99, []),
        (0, 100, [(10, 0)]),
        (100, 100, [(10, 0)]),
        (150, 160, [(10, 0)]),
        (200, 200, [(10, 0)]),
        (201, 299, []),
        (201, 300, [(11, 0)]),
        (0, 1_000, [(10, 0), (11, 0)]),
        (401, 1_000, []),
    ],
)
def test_rows_are_found_by_sample_times_with_inclusive_bounds(
    first: int, last: int, found: list[tuple[int, int]]
) -> None:
    # Sample times decide the order of rows, and not bucket numbers.
    stored_rows = view([], [timed(11, 0, 300, 400), timed(10, 0, 100, 200), timed(10, 1, None, None)])
    assert places(stored_rows.overlapping(first, last, 0)) == found


def test_older_buckets_are_first_so_that_later_ones_win() -> None:
    stored_rows = view([], [timed(bucket, group, 0, 9) for bucket in (12, 10, 11) for group in (1, 0)])
    assert places(stored_rows.overlapping(0, 9, 0)) == [(b, g) for b in (10, 11, 12) for g in (0, 1)]


def test_a_superseded_row_is_not_read() -> None:
    stored_rows = view([], [timed(10, 0, 0, 9), timed(10, 1, 0, 9, superseded=True)])
    assert places(stored_rows.overlapping(0, 9, 0)) == [(10, 0)]


def test_a_row_whose_data_has_expired_is_not_read_though_the_row_exists() -> None:
    stored_rows = view([], [timed(10, 0, 0, 9, data_expires=5_000), timed(11, 0, 0, 9, data_expires=5_001)])
    assert places(stored_rows.overlapping(0, 9, 4_999)) == [(10, 0), (11, 0)]
    assert places(stored_rows.overlapping(0, 9, 5_000)) == [(11, 0)]
    assert len(stored_rows.rows().groups) == 2
