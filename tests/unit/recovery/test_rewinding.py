"""The targets of a rewind, the rows that it marks, and their order."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from strandline.clock import ManualClock
from strandline.recovery.checkpoints import progress
from strandline.recovery.cutting import Cutting
from strandline.recovery.offset_policy import LogMismatch, LogState
from strandline.recovery.present import Present
from strandline.recovery.rewinding import (
    RewindPlan,
    RewindRefused,
    Target,
    ToBucket,
    ToOffset,
    ToTime,
    plan_rewind,
    rewind,
)
from strandline.store.batches import MAX_BATCH_BYTES, row_bytes
from strandline.store.protocol import Fenced, StoreUnavailable
from strandline.store.rows import LateSamples, ManifestRows, ManifestWrite, Ownership
from strandline.store.sqlite import SqliteStore, open_sqlite_store
from support.manifest_rows import SHARD, beginning, cut, manifest, row, rows_of
from support.shard_world import FaultyStore, StoreCall, quietly

pytestmark = pytest.mark.unit

HOUR = 3_600_000
GRACE = 30_000
GROUPS = 3
NOW = 1_700_000_000_000


def stored(first: int = 10, last: int = 20, *, size: int = 10) -> ManifestRows:
    """A first start at offset 100 before bucket `first`, and complete buckets with the same number of records up to
    `last`.
    """
    buckets = range(first, last + 1)
    cuts = [cut(bucket, 100 + (bucket - first) * size, 100 + (bucket + 1 - first) * size) for bucket in buckets]
    return manifest([beginning(first - 1, 100), *cuts], [row for b in buckets for row in rows_of(b, range(GROUPS))])


def log(start: int = 0, end: int = 100_000, topic_id: str = "topic-1") -> LogState:
    return LogState(topic_id, start, end)


def planned(rows: ManifestRows, target: Target, at: LogState | None = None, *, most_rows: int = 1_000) -> RewindPlan:
    return plan_rewind(
        SHARD, rows, target, at or log(), groups=GROUPS, cutting=Cutting(HOUR, GRACE), most_rows=most_rows
    )


def places(plan: RewindPlan) -> list[list[tuple[int, int]]]:
    return [[(row.bucket, row.group) for row in batch] for batch in plan.batches]


# Where to.


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


# What is marked.


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


# How it is done.


class Shard:
    """A shard in a store, with a manifest and without an owner."""

    def __init__(self, store: SqliteStore, clock: ManualClock, rows: ManifestRows) -> None:
        self.sqlite, self.store, self.clock = store, FaultyStore(store), clock
        self.owner = self.take()
        store.commit(self.owner, ManifestWrite(rows.cuts, rows.groups, next_part_id=77, present=clock.now_ms()))
        store.touch(self.owner, None, 0)

    def take(self) -> Ownership:
        before = self.sqlite.state(SHARD)
        name = f"owner-{before.epoch if before else 0}"
        taken = self.sqlite.take(SHARD, name, before, now=self.clock.now_ms(), topic_id="topic-1")
        assert taken is not None
        return taken

    def rewind(self, bucket: int = 18, *, most_rows: int = 1_000) -> RewindPlan:
        return rewind(
            self.store,
            self.take,
            lambda rows: planned(rows, ToBucket(bucket), most_rows=most_rows),
            self.clock,
            Present(self.clock, lambda: None),
        )

    def manifest(self) -> ManifestRows:
        found = self.sqlite.manifest(SHARD)
        assert found is not None
        return found

    def superseded(self) -> set[int]:
        return {row.bucket for row in self.manifest().groups if row.superseded}


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Shard]]:
    clock = ManualClock(NOW)
    with closing(open_sqlite_store(tmp_path / "store.sqlite", clock)) as store:
        yield lambda rows=None: Shard(store, clock, rows or stored())


def test_marking_changes_nothing_else_of_a_row_nor_the_next_part_id(make: Callable[..., Shard]) -> None:
    rows = stored()
    with_index = tuple(row(rewound.bucket, rewound.group, index=rewound.group == 1) for rewound in rows.groups)
    shard = make(replace(rows, groups=with_index))
    before = shard.manifest()
    plan = shard.rewind()
    after = shard.manifest()
    assert after.cuts == before.cuts
    assert after.groups == tuple(replace(row, superseded=row.bucket >= 18) for row in before.groups)
    assert (after.state.next_part_id, after.state.topic_id) == (77, "topic-1")
    assert after.state.epoch == before.state.epoch + 1
    assert plan.rows == 9
    done = progress(after, GROUPS, SHARD)
    assert done is not None
    assert set(done.checkpoints) == {plan.offset}


def test_a_rewind_gives_up_ownership(make: Callable[..., Shard]) -> None:
    shard = make()
    shard.rewind()
    assert shard.manifest().state.seen_at is None


def test_a_refused_rewind_gives_up_ownership_and_marks_nothing(make: Callable[..., Shard]) -> None:
    shard = make()
    with pytest.raises(RewindRefused):
        shard.rewind(21)
    assert shard.manifest().state.seen_at is None
    assert shard.superseded() == set()


def commits(number: int, error: BaseException) -> Callable[[StoreCall], None]:
    """Let the first commits pass, and raise at the next."""
    left = number

    def hook(call: StoreCall) -> None:
        nonlocal left
        left -= call.name == "commit"
        if left < 0:
            raise error

    return hook


def test_a_store_that_fails_in_the_middle_leaves_a_shorter_rewind_that_can_be_continued(
    make: Callable[..., Shard],
) -> None:
    shard = make()
    shard.store.before = commits(2, StoreUnavailable("gone"))
    with pytest.raises(StoreUnavailable):
        shard.rewind(17, most_rows=3)
    assert shard.superseded() == {19, 20}
    shard.store.before = quietly
    assert shard.rewind(17, most_rows=3).rows == 6
    assert shard.superseded() == {17, 18, 19, 20}


def test_a_rewind_that_loses_ownership_stops_and_does_not_end_the_new_owner_s(
    make: Callable[..., Shard],
) -> None:
    shard = make()

    def overtake(call: StoreCall) -> None:
        if call.name == "commit" and shard.superseded():
            shard.store.after = quietly
            shard.take()

    shard.store.after = overtake
    with pytest.raises(Fenced):
        shard.rewind(17, most_rows=3)
    assert shard.superseded() == {20}
    assert shard.manifest().state.seen_at == NOW


def test_a_long_rewind_writes_heartbeats(make: Callable[..., Shard]) -> None:
    shard = make()
    seen: list[int | None] = []

    def take_long(call: StoreCall) -> None:
        if call.name == "commit":
            shard.clock.sleep(11)
        if call.name == "touch":
            seen.append(call.arguments[1])

    shard.store.after = take_long
    shard.rewind(18, most_rows=3)
    assert seen == [NOW + 11_000, NOW + 22_000, NOW + 33_000, None]


def test_a_rewind_is_kept_if_giving_up_ownership_fails(make: Callable[..., Shard]) -> None:
    shard = make()

    def fail(call: StoreCall) -> None:
        if call.name == "touch":
            raise StoreUnavailable("gone")

    shard.store.before = fail
    with capture_logs() as lines:
        assert shard.rewind().rows == 9
    assert [line["event"] for line in lines] == ["could not give up ownership after a rewind"]
    assert shard.superseded() == {18, 19, 20}


def test_the_plan_is_made_after_taking_the_shard(make: Callable[..., Shard]) -> None:
    """Before that its owner may still commit."""
    shard = make()
    calls: list[str] = []

    def take() -> Ownership:
        calls.append("take")
        return shard.take()

    def plan_of(rows: ManifestRows) -> RewindPlan:
        calls.append("plan")
        assert rows.state.epoch == shard.owner.epoch + 1
        return planned(rows, ToBucket(20))

    rewind(shard.store, take, plan_of, shard.clock, Present(shard.clock, lambda: None))
    assert calls == ["take", "plan"]


def test_a_machine_whose_clock_is_months_ahead_does_not_end_the_rows_that_it_marks(make: Callable[..., Shard]) -> None:
    """Marked rows are written again, with the rest of their lifetime by the present."""
    shard = make()
    written: list[int] = []

    def note(call: StoreCall) -> None:
        if call.name == "commit":
            write = call.arguments[1]
            assert isinstance(write, ManifestWrite)
            written.append(write.present)

    shard.store.before = note
    ahead = ManualClock(NOW + 200 * 24 * HOUR)
    rewind(shard.store, shard.take, lambda rows: planned(rows, ToBucket(18)), ahead, Present(ahead, lambda: NOW))
    assert written == [NOW]
