"""How far a shard is stored, by the rows of its manifest."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.errors import ExitCode, Fatal
from strandline.recovery.checkpoints import (
    EXPIRY_SKEW_MS,
    ManifestInconsistent,
    Progress,
    check_contiguous,
    designated_group,
    index_rows,
    progress,
    without_expired_buckets,
)
from strandline.recovery.offset_policy import Accepted, FirstStart, LogState, Resume, StartAt, decide
from strandline.store.rows import CutRow, ManifestRows, ShardId
from support.manifest_rows import SHARD, STATE, beginning, cut, known, manifest, row, rows_of

pytestmark = pytest.mark.unit

# Cases by hand.


def test_a_shard_without_a_cut_row_was_never_read() -> None:
    assert progress(manifest([]), 2, SHARD) is None
    # Rows without contiguous cuts do not count: they may be left from rows that have expired.
    assert progress(manifest([], rows_of(7, (0, 1))), 2, SHARD) is None


def test_a_first_start_is_an_offset_that_all_groups_count_as_stored_and_not_a_bucket() -> None:
    found = known([beginning(7, 100)])
    assert list(found.checkpoints) == [100, 100]
    assert list(found.stored_up_to) == [7, 7]
    assert found.missing == {}
    assert found.lowest == 100


def test_a_group_s_checkpoint_is_the_end_of_its_newest_bucket() -> None:
    found = known([beginning(7, 100), cut(8, 100, 150), cut(9, 150, 180)], [*rows_of(8, (0, 1)), *rows_of(9, (0, 1))])
    assert list(found.checkpoints) == [180, 180]
    assert list(found.stored_up_to) == [9, 9]
    assert found.missing == {8: frozenset(), 9: frozenset()}


def test_groups_have_checkpoints_of_their_own_and_the_lowest_is_where_reading_starts() -> None:
    found = known([beginning(7, 100), cut(8, 100, 150), cut(9, 150, 180)], [*rows_of(8, (1,)), *rows_of(9, (1,))])
    assert list(found.checkpoints) == [100, 180]
    assert list(found.stored_up_to) == [7, 9]
    assert found.lowest == 100
    assert found.missing == {8: {0}, 9: {0}}


def test_rows_after_a_hole_do_not_count_but_are_not_written_again() -> None:
    found = known([beginning(7, 100), cut(8, 100, 150), cut(9, 150, 180)], [*rows_of(9, (0, 1)), *rows_of(8, (1,))])
    assert list(found.checkpoints) == [100, 180]
    assert found.missing == {8: {0}, 9: frozenset()}


def test_a_superseded_row_is_a_hole() -> None:
    rows = [*rows_of(8, (0, 1)), row(9, 0, superseded=True), row(9, 1)]
    found = known([beginning(7, 100), cut(8, 100, 150), cut(9, 150, 180)], rows)
    assert list(found.checkpoints) == [150, 180]
    assert found.missing == {8: frozenset(), 9: {0}}


def test_a_bucket_without_a_record_needs_its_rows_too() -> None:
    cuts = [beginning(7, 100), cut(8, 100, 100), cut(9, 100, 150)]
    found = known(cuts, [*rows_of(8, (0,)), *rows_of(9, (0, 1))])
    assert list(found.checkpoints) == [150, 100]
    assert list(found.stored_up_to) == [9, 7]
    assert found.missing == {8: {1}, 9: frozenset()}


def test_the_oldest_bucket_is_not_a_reset_if_it_has_no_record() -> None:
    found = known([cut(8, 100, 100), cut(9, 100, 150)], rows_of(9, (0, 1)))
    assert list(found.checkpoints) == [100, 100]
    assert list(found.stored_up_to) == [7, 7]
    assert found.missing == {8: {0, 1}, 9: frozenset()}


def test_everything_before_the_oldest_row_counts_as_stored_once_the_first_row_has_expired() -> None:
    found = known([cut(8, 100, 150), cut(9, 150, 180)], [*rows_of(8, (0,)), *rows_of(5, (0, 1))])
    assert list(found.checkpoints) == [150, 100]
    assert list(found.stored_up_to) == [8, 7]


def test_rows_whose_cut_has_expired_before_them_have_no_effect() -> None:
    rows = [*rows_of(6, (0, 1)), *rows_of(7, (0, 1)), *rows_of(8, (0, 1))]
    found = known([cut(8, 100, 150)], rows)
    assert list(found.checkpoints) == [150, 150]
    assert found.missing == {8: frozenset()}


def test_only_what_follows_the_newest_reset_counts() -> None:
    cuts = [
        beginning(3, 500),
        cut(4, 500, 600),
        beginning(6, 40),
        cut(7, 40, 45),
        beginning(20, 0),
        cut(21, 0, 10),
        cut(22, 10, 30),
    ]
    found = known(cuts, [*rows_of(7, (0, 1)), *rows_of(21, (0, 1)), *rows_of(22, (1,))])
    assert found.cuts == cuts[4:]
    assert list(found.checkpoints) == [10, 30]
    assert list(found.stored_up_to) == [21, 22]
    assert set(found.missing) == {21, 22}


def test_rows_of_a_bucket_that_a_reset_replaced_do_not_count_for_the_reset() -> None:
    found = known([beginning(8, 0), cut(9, 0, 10)], [row(8, 0, superseded=True), *rows_of(9, (0,))])
    assert list(found.checkpoints) == [10, 0]
    assert found.missing == {9: {1}}


def test_accepted_loss_changes_no_checkpoint() -> None:
    lost = replace(cut(8, 100, 150), lost_to=130)
    found = known([beginning(7, 100), lost], rows_of(8, (0,)))
    assert list(found.checkpoints) == [150, 100]


def test_rows_of_unknown_groups_do_not_count() -> None:
    found = known([beginning(7, 100), cut(8, 100, 150)], rows_of(8, (0, 1, 2, 3)), groups=1)
    assert list(found.checkpoints) == [150]


# Rows that are not contiguous.


@pytest.mark.parametrize(
    ("cuts", "message"),
    [
        (
            [cut(8, 100, 150), cut(10, 150, 180)],
            "the cuts of metrics/3 are not contiguous: bucket 8 ends at offset 150, bucket 10 starts at offset 150",
        ),
        (
            [cut(8, 100, 150), cut(9, 149, 180)],
            "the cuts of metrics/3 are not contiguous: bucket 8 ends at offset 150, bucket 9 starts at offset 149",
        ),
        (
            [cut(8, 100, 150), cut(9, 151, 180)],
            "the cuts of metrics/3 are not contiguous: bucket 8 ends at offset 150, bucket 9 starts at offset 151",
        ),
        (
            [cut(8, 100, 150), cut(8, 150, 180)],
            "the cuts of metrics/3 are not contiguous: bucket 8 ends at offset 150, bucket 8 starts at offset 150",
        ),
        (
            [beginning(7, 100), cut(9, 100, 180)],
            "the cuts of metrics/3 are not contiguous: bucket 7 ends at offset 100, bucket 9 starts at offset 100",
        ),
        (
            [beginning(7, 100), cut(8, 0, 180)],
            "the cuts of metrics/3 are not contiguous: bucket 7 ends at offset 100, bucket 8 starts at offset 0",
        ),
        (
            [cut(8, 100, 90), cut(9, 90, 180)],
            "the manifest of metrics/3 has bucket 8 from offset 100 to 90: it ends before it starts",
        ),
        ([cut(8, 100, 90)], "the manifest of metrics/3 has bucket 8 from offset 100 to 90: it ends before it starts"),
    ],
)
def test_cuts_that_are_not_contiguous_are_refused_with_their_positions(cuts: list[CutRow], message: str) -> None:
    with pytest.raises(ManifestInconsistent) as raised:
        progress(manifest(cuts), 2, SHARD)
    assert isinstance(raised.value, Fatal)
    assert raised.value.exit_code == ExitCode.FAILED
    assert raised.value.message == message
    assert raised.value.remedy.startswith("Restore the manifest from a backup")


def test_cuts_before_the_newest_reset_need_not_be_contiguous() -> None:
    torn = [cut(1, 0, 10), cut(4, 700, 800)]
    assert known([*torn, beginning(9, 5), cut(10, 5, 6)]).lowest == 5
    with pytest.raises(ManifestInconsistent):
        progress(manifest([*torn, cut(5, 800, 900)]), 2, SHARD)


def test_one_row_and_none_are_always_contiguous() -> None:
    check_contiguous([], SHARD)
    check_contiguous([cut(8, 100, 100)], SHARD)


# The designated group and the index.


def test_the_designated_group_of_a_shard_never_changes() -> None:
    """Stored data depends on it: with another choice, index buckets would not be found."""
    chosen = [designated_group(ShardId("metrics", shard), 16) for shard in range(8)]
    assert chosen == [13, 13, 7, 14, 10, 11, 0, 3]
    assert designated_group(ShardId("power", 0), 256) == 40


@given(st.text(min_size=1), st.integers(0, 10_000), st.integers(1, 256))
def test_the_designated_group_is_one_of_the_groups(dataset: str, shard: int, groups: int) -> None:
    assert 0 <= designated_group(ShardId(dataset, shard), groups) < groups


def test_shards_spread_their_designated_groups() -> None:
    chosen = [designated_group(ShardId("metrics", shard), 16) for shard in range(256)]
    assert set(chosen) == set(range(16))
    assert max(chosen.count(group) for group in range(16)) < 40


def test_index_rows_are_the_designated_group_s_newest_first_with_superseded_ones() -> None:
    rows = [
        row(8, 1, index=True),
        row(8, 0),
        row(10, 1, index=True, superseded=True),
        row(9, 1, index=True),
        row(9, 0, index=True),
        row(11, 1),
    ]
    # A cut that has expired, and one before a reset, take no key away.
    found = index_rows(manifest([beginning(10, 0)], rows), 1, now=0)
    assert [(row.bucket, row.group, row.superseded) for row in found] == [
        (10, 1, True),
        (9, 1, False),
        (8, 1, False),
    ]
    assert index_rows(manifest([beginning(10, 0)], rows), 2, now=0) == []


def test_index_rows_come_in_order_whatever_the_order_of_the_manifest() -> None:
    rows = tuple(row(bucket, 0, index=True) for bucket in (5, 9, 7, 6, 8))
    assert [row.bucket for row in index_rows(ManifestRows(STATE, (), rows), 0, now=0)] == [9, 8, 7, 6, 5]


# Scenarios that depend on checkpoints.


def goes_on_from(found: Progress | None, log: LogState) -> object:
    return decide(
        str(SHARD),
        found.lowest if found is not None else None,
        STATE.topic_id,
        log,
        in_dataset=True,
        first_start=FirstStart(StartAt.LATEST),
        accepted=Accepted(),
    )


def test_scenario_11_a_first_start_with_latest_that_crashed_before_any_row_starts_where_it_did() -> None:
    later = LogState("topic-1", start=0, end=900)
    assert goes_on_from(known([beginning(7, 100)]), later) == Resume(100)
    assert goes_on_from(known([beginning(7, 100), cut(8, 100, 150)]), later) == Resume(100)


def test_scenario_12_groups_without_a_row_start_where_the_first_start_did() -> None:
    found = known([beginning(7, 100), cut(8, 100, 150)], rows_of(8, (0, 1)), groups=4)
    assert list(found.checkpoints) == [150, 150, 100, 100]
    assert found.missing == {8: {2, 3}}
    assert goes_on_from(found, LogState("topic-1", start=0, end=900)) == Resume(100)


def test_scenario_25_the_index_is_stored_no_further_than_the_designated_group_s_first_hole() -> None:
    designated = 1
    cuts = [beginning(7, 100), cut(8, 100, 150), cut(9, 150, 180)]
    others = [*rows_of(8, (0, 2)), *rows_of(9, (0, 2))]
    failed = known(cuts, others, groups=3)
    assert (failed.stored_up_to[designated], failed.checkpoints[designated]) == (7, 100)
    # Even if the later bucket's row existed: only rows before the hole count.
    ahead = known(cuts, [*others, row(9, designated, index=True)], groups=3)
    assert (ahead.stored_up_to[designated], ahead.checkpoints[designated]) == (7, 100)
    assert designated in ahead.missing[8]
    succeeded = known(cuts, [*others, row(8, designated, index=True)], groups=3)
    assert (succeeded.stored_up_to[designated], succeeded.checkpoints[designated]) == (8, 150)


def test_an_index_bucket_that_has_expired_is_not_named_though_its_row_is_there() -> None:
    rows = tuple(replace(row(bucket, 0, index=True), data_expires=bucket * 10) for bucket in (5, 6, 7))
    assert [row.bucket for row in index_rows(ManifestRows(STATE, (), rows), 0, now=60)] == [7]


def test_remaining_rows_that_expire_together_are_left_out() -> None:
    """Retention was made shorter: rows of several buckets have one date, and the store removes them in any order."""
    date = 1_000 + EXPIRY_SKEW_MS
    cuts = [replace(cut(bucket, 10 * bucket, 10 * bucket + 10), expires=date) for bucket in (1, 3)]
    kept = [replace(cut(bucket, 10 * bucket, 10 * bucket + 10), expires=2 * date) for bucket in (4, 5)]
    # Bucket 2 is gone already.
    torn = manifest([*cuts[:1], *kept], [*rows_of(1, (0,)), *rows_of(4, (0,))])
    assert {cut.bucket for cut in without_expired_buckets(torn, date).cuts} == {4, 5}
    assert {cut.bucket for cut in without_expired_buckets(torn, 1_000).cuts} == {4, 5}
    assert [row.bucket for row in without_expired_buckets(torn, 1_000).groups] == [4]
    assert without_expired_buckets(torn, 999) == torn, "it has not expired: the manifest has a gap"
    whole = manifest([cuts[1], *kept], [])
    assert without_expired_buckets(whole, 2 * date) == whole


def test_a_bucket_whose_rows_have_expired_before_its_cut_is_left_out() -> None:
    """The clock of the store's server was set while the bucket was stored."""
    oldest = replace(cut(1, 10, 20), expires=1_000)
    newer = [replace(cut(bucket, 10 * bucket, 10 * bucket + 10), expires=10 * EXPIRY_SKEW_MS) for bucket in (2, 3)]
    # Group 0's row of bucket 1 is gone, and group 1 is stored up to bucket 1.
    remains = manifest([oldest, *newer], [*rows_of(1, (1,)), *rows_of(2, (0,)), *rows_of(3, (0,))])
    assert {cut.bucket for cut in without_expired_buckets(remains, 1_000).cuts} == {2, 3}
    assert {row.bucket for row in without_expired_buckets(remains, 1_000).groups} == {2, 3}
    early = 999 - EXPIRY_SKEW_MS
    assert without_expired_buckets(remains, early) == remains, "a row that must exist is missing"
    waiting = manifest([oldest, *newer], [*rows_of(1, (0,))])
    assert without_expired_buckets(waiting, 1_000) == waiting, "group 1 was never stored, and nothing after bucket 1 is"


def test_remains_are_left_out_although_a_row_of_a_live_bucket_is_missing() -> None:
    """What is missing of the live bucket is found later."""
    remains = replace(cut(1, 10, 20), expires=1_000)
    newer = [replace(cut(bucket, 10 * bucket, 10 * bucket + 10), expires=10 * EXPIRY_SKEW_MS) for bucket in (3, 4, 5)]
    torn = manifest([remains, *newer], [*rows_of(4, (0,)), *rows_of(5, (0,))])
    assert {one.bucket for one in without_expired_buckets(torn, 1_000).cuts} == {3, 4, 5}


def test_a_gap_after_a_row_that_must_exist_is_kept() -> None:
    """The oldest row has expired but the next one has not: what is missing after it is a loss."""
    expired = replace(cut(1, 10, 20), expires=1_000)
    later = 2_000 + EXPIRY_SKEW_MS
    living = [replace(cut(bucket, 10 * bucket, 10 * bucket + 10), expires=later) for bucket in (2, 4)]
    torn = manifest([expired, *living], [])
    assert without_expired_buckets(torn, 1_000) == torn
