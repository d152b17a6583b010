"""The targets of a rewind, and the rows that it marks."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.recovery.offset_policy import LogMismatch
from strandline.recovery.rewinding import (
    RewindPlan,
    RewindRefused,
    Target,
    ToBucket,
    ToOffset,
    ToTime,
)
from strandline.store.batches import MAX_BATCH_BYTES, row_bytes
from strandline.store.rows import LateSamples
from support.manifest_rows import beginning, cut, manifest, rows_of
from support.rewind_plans import GRACE, GROUPS, HOUR, log, planned, stored

pytestmark = pytest.mark.unit


def places(plan: RewindPlan) -> list[list[tuple[int, int]]]:
    return [[(row.bucket, row.group) for row in batch] for batch in plan.batches]


# Targets.


def test_a_rewind_to_a_bucket_marks_it_and_all_that_are_newer() -> None:
    plan = planned(stored(), ToBucket(18))
    assert (plan.bucket, plan.last_bucket, plan.offset, plan.end) == (18, 20, 180, 210)
    assert (plan.buckets, plan.records, plan.rows, plan.samples) == (3, 30, 9, 9)
    assert places(plan) == [[(bucket, group) for bucket in (20, 19, 18) for group in range(GROUPS)]]


def test_a_rewind_to_an_offset_requires_a_cut_at_that_offset() -> None:
    assert planned(stored(), ToOffset(180)) == planned(stored(), ToBucket(18))
    for offset in (181, 185, 189):
        with pytest.raises(RewindRefused, match=f"offset {offset} of shard metrics/3 is inside bucket 18") as caught:
            planned(stored(), ToOffset(offset))
        assert "the offsets 180 and 190" in caught.value.remedy


@pytest.mark.parametrize(
    ("time", "bucket"),
    [
        (18 * HOUR + GRACE, 18),
        (19 * HOUR + GRACE - 1, 18),
        (18 * HOUR + GRACE - 1, 17),
        (18 * HOUR, 17),
    ],
)
def test_a_rewind_to_a_time_takes_the_newest_cut_that_is_not_after_it(time: int, bucket: int) -> None:
    """By record times: those of the grace are in the bucket before."""
    assert planned(stored(), ToTime(time)).bucket == bucket


def test_of_buckets_without_a_record_the_newest_that_begins_at_an_offset_is_taken() -> None:
    cuts = [beginning(9, 100), cut(10, 100, 110), cut(11, 110, 110), cut(12, 110, 110), cut(13, 110, 130)]
    rows = manifest(cuts, [row for bucket in range(10, 14) for row in rows_of(bucket, range(GROUPS))])
    assert planned(rows, ToOffset(110)).bucket == 13
    assert planned(rows, ToBucket(11)).offset == 110


def test_a_rewind_may_go_to_where_reading_began() -> None:
    for target in (ToBucket(10), ToOffset(100), ToTime(10 * HOUR + GRACE)):
        assert planned(stored(), target).bucket == 10


@pytest.mark.parametrize("target", [ToBucket(9), ToOffset(99), ToTime(10 * HOUR)])
def test_a_rewind_does_not_go_over_a_reset(target: Target) -> None:
    older = stored(2, 6)
    rows = stored()
    rows = replace(rows, cuts=rows.cuts + older.cuts, groups=rows.groups + older.groups)
    with pytest.raises(RewindRefused, match="started, or was reset, at offset 100 with bucket 10") as caught:
        planned(rows, target)
    assert (
        caught.value.remedy
        == "The oldest possible target is bucket 10, offset 100, which starts at 1970-01-01T10:00:30Z"
    )


@pytest.mark.parametrize("target", [ToBucket(11), ToOffset(110), ToTime(12 * HOUR)])
def test_a_rewind_does_not_go_below_the_manifest(target: Target) -> None:
    rows = stored()
    rows = replace(rows, cuts=tuple(cut for cut in rows.cuts if cut.bucket > 12))
    with pytest.raises(RewindRefused, match="the manifest reaches back to bucket 13, offset 130") as caught:
        planned(rows, target)
    assert "bucket 13, offset 130" in caught.value.remedy


@pytest.mark.parametrize("target", [ToBucket(21), ToOffset(210), ToOffset(5_000), ToTime(22 * HOUR)])
def test_the_open_bucket_is_not_a_target(target: Target) -> None:
    with pytest.raises(RewindRefused, match="the newest bucket that was closed is 20") as caught:
        planned(stored(), target)
    assert "at the next start anyway" in caught.value.remedy


def test_a_rewind_does_not_go_below_the_log_s_start_and_the_error_names_the_oldest_target() -> None:
    for start in (181, 185, 190):
        with pytest.raises(RewindRefused, match=f"bucket 18, offset 180: the log starts at offset {start}") as caught:
            planned(stored(), ToBucket(18), log(start))
        assert "The oldest possible target is bucket 19, offset 190" in caught.value.remedy
    assert planned(stored(), ToBucket(18), log(180)).offset == 180


def test_with_nothing_left_in_the_log_no_cut_is_possible() -> None:
    with pytest.raises(RewindRefused, match="no cut to rewind to: the log starts at offset 201"):
        planned(stored(), ToBucket(18), log(201))


def test_a_shard_that_has_read_nothing_can_not_be_rewound() -> None:
    with pytest.raises(RewindRefused, match="metrics/3 was never read"):
        planned(manifest([]), ToBucket(18))
    with pytest.raises(RewindRefused, match="metrics/3 has not closed a bucket"):
        planned(manifest([beginning(9, 100)]), ToBucket(10))


def test_another_topic_is_not_read_in_place_of_the_original_one() -> None:
    with pytest.raises(LogMismatch, match="was read from another topic"):
        planned(stored(), ToBucket(18), log(topic_id="topic-2"))
    with pytest.raises(LogMismatch, match="up to offset 210, and the log ends at 209"):
        planned(stored(), ToBucket(18), log(end=209))
    planned(stored(), ToBucket(18), log(end=210))


# Marked rows.


def test_rows_that_are_superseded_or_missing_are_not_marked() -> None:
    rows = stored()
    changed = [replace(row, superseded=row.bucket == 20) for row in rows.groups if (row.bucket, row.group) != (19, 1)]
    plan = planned(replace(rows, groups=tuple(changed)), ToBucket(18))
    assert places(plan) == [[(19, 0), (19, 2), (18, 0), (18, 1), (18, 2)]]
    assert plan.samples == 5
    assert (plan.buckets, plan.records) == (3, 30), "all of it is read again, whoever requested it"


def test_a_completed_rewind_has_no_batches() -> None:
    rows = stored()
    done = replace(rows, groups=tuple(replace(row, superseded=row.bucket >= 15) for row in rows.groups))
    assert planned(done, ToBucket(15)).batches == ()
    assert planned(done, ToBucket(17)).batches == ()
    assert places(planned(done, ToBucket(14))) == [[(14, 0), (14, 1), (14, 2)]]


def test_rows_with_thousands_of_late_hours_go_in_smaller_batches() -> None:
    """As a node of schema version 2 has written them."""
    late = tuple(LateSamples(hour, 1) for hour in range(8_000))
    rows = stored()
    rows = replace(rows, groups=tuple(replace(row, late=late) for row in rows.groups))
    plan = planned(rows, ToBucket(15))
    assert len(plan.batches) > 1
    for batch in plan.batches:
        assert sum(map(row_bytes, batch)) <= MAX_BATCH_BYTES or len(batch) == 1
        assert [row.bucket for row in batch] == sorted((row.bucket for row in batch), reverse=True)
    assert plan.rows == planned(stored(), ToBucket(15)).rows


def test_a_batch_has_complete_buckets_newest_first_and_at_most_a_thousand_rows() -> None:
    assert places(planned(stored(), ToBucket(17), most_rows=7)) == [
        [(bucket, group) for bucket in (20, 19) for group in range(GROUPS)],
        [(bucket, group) for bucket in (18, 17) for group in range(GROUPS)],
    ]
    many = planned(stored(10, 1_009), ToBucket(10))
    assert [len(batch) for batch in many.batches] == [999, 999, 999, 3]


@given(
    most=st.integers(1, 20), back=st.integers(0, 10), gone=st.sets(st.tuples(st.integers(10, 20), st.integers(0, 2)))
)
def test_after_each_batch_the_manifest_is_as_after_a_shorter_rewind(
    most: int, back: int, gone: set[tuple[int, int]]
) -> None:
    """After each batch, every group has its earlier rows up to some bucket, and none after it."""
    rows = stored()
    rows = replace(rows, groups=tuple(row for row in rows.groups if (row.bucket, row.group) not in gone))
    plan = planned(rows, ToBucket(20 - back), most_rows=most)
    assert all(len(batch) <= most for batch in plan.batches)
    assert {place for batch in places(plan) for place in batch} == {
        (row.bucket, row.group) for row in rows.groups if row.bucket >= plan.bucket
    }
    marked: set[tuple[int, int]] = set()
    for batch in places(plan):
        marked |= set(batch)
        for group in range(GROUPS):
            of_group = {bucket for bucket, member in marked if member == group}
            left = {row.bucket for row in rows.groups if row.group == group} - of_group
            assert max(left, default=0) < min(of_group, default=10**6)
