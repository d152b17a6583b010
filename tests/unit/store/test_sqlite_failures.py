"""A SQLite store that can't write raises the store's errors, and writes completely or not at all."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.store.protocol import StoreRefused, StoreUnavailable
from strandline.store.rows import IndexBucketOf, Lifetime, Segment, SegmentsOf, ShardId
from strandline.store.sqlite import SqliteStore, open_sqlite_store
from support.store_contract import LASTING, cut, fresh_shard, group_row, job, manifest_write, series_key, taken

pytestmark = pytest.mark.unit

CLOCK = ManualClock()
LATER = Lifetime.from_present(CLOCK.now_ms(), LASTING)


def opened(path: Path, *, busy_timeout: float = 10.0) -> SqliteStore:
    store = open_sqlite_store(path, CLOCK, busy_timeout=busy_timeout)
    assert isinstance(store, SqliteStore)
    return store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with closing(opened(path)) as store:
        yield store


@pytest.fixture
def shard() -> ShardId:
    return fresh_shard()


def limit_pages(store: SqliteStore, pages: int | None) -> None:
    """Limit the file to this many further pages, as on a disk that is nearly full."""
    with store._connections.reading() as connection:
        (now,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {2**31 if pages is None else now + pages}")


def test_a_full_disk_is_a_retryable_error(store: SqliteStore, shard: ShardId) -> None:
    ownership = taken(store, shard)
    store.commit(ownership, manifest_write(cuts=(cut(1, LATER),)))
    before = store.manifest(shard)
    limit_pages(store, 3)
    where = SegmentsOf(shard, 1, 0, "attempt-1")
    segments = [Segment(series_key(number), 0, bytes(65_536)) for number in range(10)]
    with pytest.raises(StoreUnavailable, match=r"no space left.*Free space"):
        store.write_segments(where, segments, LATER)
    with pytest.raises(StoreUnavailable, match=r"no space left.*Free space"):
        store.commit(ownership, manifest_write(groups=tuple(group_row(9, group, LATER) for group in range(2_000))))
    assert list(store.segments(where)) == []
    assert store.manifest(shard) == before
    limit_pages(store, None)
    store.write_segments(where, segments, LATER)
    assert list(store.segments(where)) == segments


def test_a_read_only_file_can_still_be_read(store: SqliteStore, shard: ShardId) -> None:
    ownership = taken(store, shard)
    with store._connections.reading() as connection:
        connection.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreRefused, match=r"may not be written.*read-only"):
        store.commit(ownership, manifest_write(next_part_id=5))
    state = store.state(shard)
    assert state is not None
    assert state.next_part_id == 0


def test_a_value_that_does_not_fit_is_refused_and_nothing_of_its_commit_stays(
    store: SqliteStore, shard: ShardId
) -> None:
    ownership = taken(store, shard)
    before = store.manifest(shard)
    for wrong in (
        replace(group_row(1, 1, LATER), samples=2**63),
        replace(group_row(1, 1, LATER), written_by="half of a pair: \ud800"),
    ):
        write = manifest_write(cuts=(cut(1, LATER),), groups=(group_row(1, 0, LATER), wrong), next_part_id=8)
        with pytest.raises(StoreRefused, match="can't be stored"):
            store.commit(ownership, write)
        assert store.manifest(shard) == before


def test_a_damaged_file_is_refused_with_its_name(path: Path, shard: ShardId) -> None:
    with closing(opened(path)) as store:
        taken(store, shard)
    data = bytearray(path.read_bytes())
    page = 16_384
    data[page:] = b"\xff" * (len(data) - page)
    path.write_bytes(data)
    with pytest.raises(StoreRefused, match=r"store\.sqlite is damaged"), closing(opened(path)) as store:
        store.manifest(shard)


def test_waiting_too_long_for_another_process_is_a_retryable_error(path: Path, shard: ShardId) -> None:
    with (
        closing(opened(path, busy_timeout=0.05)) as store,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        ownership = taken(store, shard)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            store.touch(ownership, 5_000, 1)
        assert store.state(shard) is not None, "reading does not wait for the writer"
        other.execute("ROLLBACK")
        store.touch(ownership, 5_000, 1)


def test_waiting_too_long_for_another_thread_is_a_retryable_error(path: Path, shard: ShardId) -> None:
    with closing(opened(path, busy_timeout=0.05)) as store:
        ownership = taken(store, shard)
        writing, enough = threading.Event(), threading.Event()

        def write() -> None:
            with store._connections.writing():
                writing.set()
                enough.wait(timeout=60)

        thread = threading.Thread(target=write)
        thread.start()
        assert writing.wait(timeout=60)
        with pytest.raises(StoreUnavailable, match="locked by another writer"):
            store.touch(ownership, 5_000, 1)
        enough.set()
        thread.join()
        store.touch(ownership, 5_000, 1)


def test_a_closed_store_raises_an_error(path: Path, shard: ShardId) -> None:
    store = opened(path)
    store.write_index_bucket(IndexBucketOf(shard, 1, "attempt-1"), [b"x" * 2**20] * 20, LATER)
    rows = store.index_bucket(IndexBucketOf(shard, 1, "attempt-1"))
    assert next(rows) == b"x" * 2**20
    store.close()
    with pytest.raises(StoreRefused, match="is closed"):
        store.state(shard)
    with pytest.raises(StoreRefused, match="is closed"):
        list(rows)


def test_a_job_is_only_replaced_by_one_for_the_same_bucket(store: SqliteStore, shard: ShardId) -> None:
    stored = job(shard, 1, LATER)
    store.add_job(stored)
    with pytest.raises(ValueError, match=r"bucket 1 .*bucket 2"):
        store.replace_job(stored, replace(stored, bucket=2))
    assert list(store.jobs(shard)) == [stored]
