"""The file of a SQLite store: its settings, and which files are refused."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.store.protocol import Store, StoreRefused
from strandline.store.rows import IndexBucketOf, Lifetime
from strandline.store.sqlite import SqliteStore, open_sqlite_store
from strandline.store.sqlite.schema import APPLICATION_ID, MIN_VERSION, VERSION, written_version
from support.store_contract import LASTING, cut, fresh_shard, manifest_write, taken

pytestmark = pytest.mark.unit


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


def opened(path: Path) -> Store:
    return open_sqlite_store(path, ManualClock())


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_what_is_acknowledged_is_on_disk(path: Path) -> None:
    """A write-ahead log, synced at each commit, so that a power cut loses nothing."""
    with closing(opened(path)) as store:
        assert isinstance(store, SqliteStore)
        for _ in range(2):
            with store._connections.reading() as first, store._connections.reading() as second:
                for connection in (first, second):
                    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
                    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_a_store_that_is_opened_again_has_all_that_was_written(path: Path) -> None:
    clock, shard = ManualClock(), fresh_shard()
    rows = (cut(1, Lifetime.from_present(clock.now_ms(), LASTING)),)
    with closing(open_sqlite_store(path, clock)) as store:
        store.commit(taken(store, shard), manifest_write(cuts=rows, next_part_id=7))
        before = store.manifest(shard)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name], "the log was not checkpointed"
    with closing(open_sqlite_store(path, clock)) as store:
        assert store.manifest(shard) == before


def test_a_connection_that_is_in_use_when_the_store_is_closed_is_closed_after_use(path: Path) -> None:
    store = opened(path)
    assert isinstance(store, SqliteStore)
    with store._connections.writing():
        store.close()
    # The last connection deletes the log when it closes.
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_reader_between_two_rows_does_not_hold_the_log(path: Path) -> None:
    """A log that is being read can't be checkpointed, and keeps growing."""
    clock, where = ManualClock(), IndexBucketOf(fresh_shard(), 1, "attempt-1")
    with closing(open_sqlite_store(path, clock)) as store:
        store.write_index_bucket(where, [bytes(2**20)] * 20, Lifetime.from_present(clock.now_ms(), LASTING))
        rows = store.index_bucket(where)
        assert next(rows) == bytes(2**20)
        # Written after the reader began: a snapshot of the reader would not have it.
        taken(store, where.shard)
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
        assert len(list(rows)) == 19


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    with closing(opened(path)) as store:
        assert store.state(fresh_shard()) is None


def test_a_name_with_a_special_meaning_for_sqlite_is_a_file_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    opened(Path(":memory:")).close()
    assert (tmp_path / ":memory:").stat().st_size > 0


def test_a_file_that_a_newer_version_has_added_to_is_opened_and_stays_of_that_version(path: Path) -> None:
    opened(path).close()
    change(path, "ALTER TABLE cuts ADD COLUMN another TEXT", "UPDATE schema_version SET written_version = 99")
    opened(path).close()
    with closing(sqlite3.connect(path)) as connection:
        assert written_version(connection) == 99 > VERSION


def test_a_file_that_needs_a_newer_version_is_refused(path: Path) -> None:
    opened(path).close()
    change(path, f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(
        StoreRefused, match=f"needs at least schema version {VERSION + 1}.*has version {VERSION}.*newer"
    ):
        opened(path)


def test_a_file_of_no_known_version_is_refused(path: Path) -> None:
    opened(path).close()
    change(path, "PRAGMA user_version = 0")
    with pytest.raises(StoreRefused, match="version 0"):
        opened(path)


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TABLE segments (id INTEGER)",),
        ("PRAGMA application_id = 7",),
        ("PRAGMA user_version = 3",),
    ],
)
def test_a_file_of_another_program_is_refused_and_not_changed(path: Path, statements: tuple[str, ...]) -> None:
    change(path, *statements)
    before = path.read_bytes()
    with pytest.raises(StoreRefused, match="not a Strandline store"):
        opened(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_file_that_is_not_a_database_is_refused_and_not_changed(path: Path) -> None:
    path.write_text("a shopping list\n" * 100)
    with pytest.raises(StoreRefused, match="not a SQLite file"):
        opened(path)
    assert path.read_text() == "a shopping list\n" * 100


def test_a_store_without_a_folder_is_refused_with_what_to_check(tmp_path: Path) -> None:
    with pytest.raises(StoreRefused, match=r"can't be opened.*folder exists"):
        opened(tmp_path / "nowhere" / "store.sqlite")
    with pytest.raises(StoreRefused, match="can't be opened"):
        opened(tmp_path)


def test_the_file_has_an_application_id(path: Path) -> None:
    opened(path).close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert connection.execute("PRAGMA user_version").fetchone() == (MIN_VERSION,)
        assert written_version(connection) == VERSION
