"""In a SQLite store an expired row is not seen from that millisecond on, and is deleted little by little."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.store.jobs import JobResultOf, ResultRow
from strandline.store.rows import IndexBucketOf, ManifestWrite, Segment, SegmentsOf, ShardId
from strandline.store.sqlite import SqliteStore, open_sqlite_store
from support.store_contract import LASTING, cut, fresh_shard, group_row, job, series_key, state_of, taken

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
    """How many rows there are that expire, seen or not."""
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


def test_a_row_is_seen_up_to_its_last_millisecond(store: SqliteStore, clock: ManualClock, shard: ShardId) -> None:
    expires = clock.now_ms() + 1_000
    ownership = taken(store, shard)
    where = SegmentsOf(shard, 1, 0, "attempt-1")
    store.write_segments(where, segments(3), expires)
    store.commit(ownership, ManifestWrite(cuts=(cut(1, expires),), groups=(group_row(1, 0, expires),)))
    store.add_job(job(shard, 1, expires))

    def seen() -> tuple[int, int, int, int]:
        rows = store.manifest(shard)
        assert rows is not None
        return len(list(store.segments(where))), len(rows.cuts), len(rows.groups), len(store.jobs(shard))

    clock.sleep(0.999)
    assert seen() == (3, 1, 1, 1)
    clock.sleep(0.001)
    assert seen() == (0, 0, 0, 0)
    assert rows_on_disk(store) == 6, "reading deletes nothing"


def test_writes_delete_what_has_expired_of_every_kind(store: SqliteStore, clock: ManualClock, shard: ShardId) -> None:
    ownership = taken(store, shard)
    expires = clock.now_ms() + 1_000
    store.write_segments(SegmentsOf(shard, 1, 0, "attempt-1"), segments(20), expires)
    store.write_index_bucket(IndexBucketOf(shard, 1, "attempt-1"), [b"x"] * 20, expires)
    results = [ResultRow("summary", seq, b"x") for seq in range(20)]
    store.write_result(JobResultOf(shard, 1, "plan-1/1"), results, expires)
    groups = tuple(group_row(1, group, expires) for group in range(20))
    store.commit(ownership, ManifestWrite(cuts=(cut(1, expires),), groups=groups, next_part_id=70))
    store.add_job(job(shard, 1, expires))
    clock.sleep(1)
    before = state_of(store, shard)
    for bucket in range(2, 40):
        store.commit(ownership, ManifestWrite(cuts=(cut(bucket, clock.now_ms() + LASTING),)))
    assert rows_on_disk(store) == 38
    assert store.state(shard) == before


def test_no_write_deletes_more_than_in_proportion_to_itself(
    store: SqliteStore, clock: ManualClock, shard: ShardId
) -> None:
    store.write_segments(SegmentsOf(shard, 1, 0, "attempt-1"), segments(1_000), clock.now_ms() + 1_000)
    clock.sleep(1)
    left = 1_000
    for written, deleted in ((1, 8), (4, 8), (50, 100)):
        bucket = 10 + written
        store.write_segments(SegmentsOf(shard, bucket, 0, "attempt-1"), segments(written), clock.now_ms() + LASTING)
        left += written - deleted
        assert rows_on_disk(store) == left


def test_the_file_stops_growing_once_as_much_expires_as_is_written(
    store: SqliteStore, clock: ManualClock, shard: ShardId, tmp_path: Path
) -> None:
    sizes = []
    for bucket in range(30):
        where = SegmentsOf(shard, bucket, 0, "attempt-1")
        store.write_segments(where, segments(20, size=65_536), clock.now_ms() + 5_000)
        clock.sleep(1)
        sizes.append((tmp_path / "store.sqlite").stat().st_size)
    assert rows_on_disk(store) <= 20 * 7
    assert sizes[-1] == sizes[15]
