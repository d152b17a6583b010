"""A SQLite store deletes rows a few at a time, once the clock has been beyond their date for a minute."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.store.jobs import JobResultOf, ResultRow
from strandline.store.rows import IndexBucketOf, Lifetime, Segment, SegmentsOf, ShardId
from strandline.store.sqlite import SqliteStore, open_sqlite_store
from support.store_contract import (
    LASTING,
    cut,
    fresh_shard,
    group_row,
    job,
    manifest_write,
    series_key,
    state_of,
    taken,
)

pytestmark = pytest.mark.unit


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[SqliteStore]:
    with closing(open_sqlite_store(tmp_path / "store.sqlite", clock)) as store:
        assert isinstance(store, SqliteStore)
        yield store


@pytest.fixture
def shard() -> ShardId:
    return fresh_shard()


def rows_on_disk(store: SqliteStore) -> int:
    """The number of rows that can expire, visible or not."""
    with store._connections.reading() as connection:
        (count,) = connection.execute(
            "SELECT (SELECT count(*) FROM segments) + (SELECT count(*) FROM index_buckets)"
            " + (SELECT count(*) FROM job_results) + (SELECT count(*) FROM flush_groups)"
            " + (SELECT count(*) FROM cuts) + (SELECT count(*) FROM jobs)"
        ).fetchone()
    assert isinstance(count, int)
    return count


def segments(count: int, size: int = 10) -> list[Segment]:
    return [Segment(series_key(number), 0, bytes(size)) for number in range(count)]


def life(clock: ManualClock, length: int) -> Lifetime:
    return Lifetime.from_present(clock.now_ms(), length)


def let_expire(store: SqliteStore, clock: ManualClock) -> None:
    """Let more than two minutes pass, with a reading of the clock in each: then a write deletes."""
    for _ in range(3):
        clock.sleep(60)
        store.remove_job(job(fresh_shard(), 1, life(clock, 1)))


class JumpingClock(ManualClock):
    """Wall time may be wrong; monotonic time continues."""

    offset = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.offset


def test_rows_exist_until_a_write_deletes_them(store: SqliteStore, clock: ManualClock, shard: ShardId) -> None:
    ownership, short = taken(store, shard), life(clock, 1_000)
    where = SegmentsOf(shard, 1, 0, "attempt-1")
    store.write_segments(where, segments(3), short)
    store.commit(ownership, manifest_write(cuts=(cut(1, short),), groups=(group_row(1, 0, short),)))
    store.add_job(job(shard, 1, short))

    def seen() -> tuple[int, int, int, int]:
        rows = store.manifest(shard)
        assert rows is not None
        return len(list(store.segments(where))), len(rows.cuts), len(rows.groups), len(store.jobs(shard))

    for _ in range(5):
        clock.sleep(60)
        assert seen() == (3, 1, 1, 1), "reading deletes nothing and returns everything"
    let_expire(store, clock)
    assert seen() == (0, 0, 0, 0)


@pytest.mark.parametrize("at", range(4))
def test_one_wrong_reading_of_the_clock_deletes_nothing(tmp_path: Path, shard: ShardId, at: int) -> None:
    """Rows with another hour of lifetime all remain, whichever write saw a clock that was a year ahead."""
    clock = JumpingClock()
    with closing(open_sqlite_store(tmp_path / "store.sqlite", clock)) as store:
        assert isinstance(store, SqliteStore)
        owner = taken(store, shard)
        store.write_segments(SegmentsOf(shard, 1, 0, "attempt-1"), segments(5), life(clock, LASTING))
        for number in range(8):
            clock.sleep(45)
            clock.offset = 365 * 86_400_000 if number == at else 0
            present = ManualClock.now_ms(clock)
            lasting = Lifetime.from_present(present, LASTING)
            store.commit(owner, manifest_write(cuts=(cut(number, lasting),), present=present))
        assert rows_on_disk(store) == 5 + 8


def test_a_cut_is_deleted_before_its_groups_rows_and_the_oldest_bucket_first(
    store: SqliteStore, clock: ManualClock, shard: ShardId
) -> None:
    """Each moment in between looks like a manifest whose oldest rows have expired, and never like a hole."""
    owner, short = taken(store, shard), life(clock, 1_000)
    buckets = range(20)
    groups = [group_row(bucket, group, short) for bucket in buckets for group in range(4)]
    store.commit(owner, manifest_write(cuts=[cut(bucket, short) for bucket in reversed(buckets)], groups=groups))
    clock.sleep(130)
    left = []
    for _ in range(30):
        clock.sleep(60)
        store.remove_job(job(fresh_shard(), 1, short))
        rows = store.manifest(shard)
        assert rows is not None
        stored = {(row.bucket, row.group) for row in rows.groups}
        for row in rows.cuts:
            assert {(row.bucket, group) for group in range(4)} <= stored
        assert [row.bucket for row in rows.cuts] == list(range(19, 19 - len(rows.cuts), -1))
        left.append(len(rows.cuts) + len(rows.groups))
    assert left[-1] == 0
    assert len(set(left)) > 5, "they were deleted at once, so the test saw no intermediate state"


def test_every_write_renews_a_jobs_lifetime(store: SqliteStore, clock: ManualClock, shard: ShardId) -> None:
    stored = job(shard, 4, life(clock, LASTING))
    store.add_job(stored)
    for epoch in range(1, 5):
        clock.sleep(0.9 * LASTING / 1_000)
        after = replace(stored, epoch=epoch)
        assert store.replace_job(stored, after), "it has expired within its lifetime"
        stored = after
        let_expire(store, clock)
    clock.sleep(LASTING / 1_000)
    let_expire(store, clock)
    assert not store.jobs(shard)


def test_writes_delete_what_has_expired_of_every_kind(store: SqliteStore, clock: ManualClock, shard: ShardId) -> None:
    ownership = taken(store, shard)
    expires = life(clock, 1_000)
    store.write_segments(SegmentsOf(shard, 1, 0, "attempt-1"), segments(20), expires)
    store.write_index_bucket(IndexBucketOf(shard, 1, "attempt-1"), [b"x"] * 20, expires)
    results = [ResultRow("summary", seq, b"x") for seq in range(20)]
    store.write_result(JobResultOf(shard, 1, "plan-1/1"), results, expires)
    groups = tuple(group_row(1, group, expires) for group in range(20))
    store.commit(ownership, manifest_write(cuts=(cut(1, expires),), groups=groups, next_part_id=70))
    store.add_job(job(shard, 1, expires))
    let_expire(store, clock)
    before = state_of(store, shard)
    for bucket in range(2, 40):
        store.commit(ownership, manifest_write(cuts=(cut(bucket, life(clock, LASTING)),), present=clock.now_ms()))
    assert rows_on_disk(store) == 38
    assert store.state(shard) == before


def test_no_write_deletes_more_than_in_proportion_to_itself(
    store: SqliteStore, clock: ManualClock, shard: ShardId
) -> None:
    store.write_segments(SegmentsOf(shard, 1, 0, "attempt-1"), segments(1_000), life(clock, 1_000))
    let_expire(store, clock)
    left = rows_on_disk(store)
    for written, deleted in ((1, 8), (4, 8), (50, 100)):
        bucket = 10 + written
        store.write_segments(SegmentsOf(shard, bucket, 0, "attempt-1"), segments(written), life(clock, LASTING))
        left += written - deleted
        assert rows_on_disk(store) == left


def test_the_file_stops_growing_once_as_much_expires_as_is_written(
    store: SqliteStore, clock: ManualClock, shard: ShardId, tmp_path: Path
) -> None:
    sizes = []
    for bucket in range(30):
        where = SegmentsOf(shard, bucket, 0, "attempt-1")
        store.write_segments(where, segments(20, size=65_536), life(clock, 300_000))
        clock.sleep(60)
        sizes.append((tmp_path / "store.sqlite").stat().st_size)
    assert rows_on_disk(store) <= 20 * 9
    assert sizes[-1] == sizes[15]
