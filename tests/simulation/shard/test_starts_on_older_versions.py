"""A start on a SQLite file of an older schema version migrates it, and finds everything."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.recovery.replay.result_codec import read_result
from strandline.store.jobs import LIFE_OF_VERSION_2, JobState
from strandline.store.sqlite import open_sqlite_store
from strandline.store.sqlite.schema import APPLICATION_ID, VERSION, written_version
from support import older_history as history
from support.older_stores import VERSIONS, write_sqlite_file
from support.shard_world import World
from support.verifying import assert_world_sound

pytestmark = pytest.mark.simulation


@pytest.fixture(params=VERSIONS, ids=lambda version: f"version_{version}")
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def path(folder: Path, version: int) -> Path:
    """A file of an older version."""
    path = folder / "store.sqlite"
    write_sqlite_file(path, version)
    return path


@pytest.fixture
def world(path: Path) -> Iterator[World]:
    """The file, and the log from which it was written."""
    with closing(World(path.parent)) as world:
        history.produce_all(world)
        yield world


def test_everything_is_read(world: World, version: int) -> None:
    history.check_read(world, version)
    history.check_bulk_jobs(world.sqlite)


def test_a_shard_continues_where_the_older_one_ended(world: World) -> None:
    history.check_continues(world)
    assert_world_sound(world)


def columns(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """By table: name, type, not-null flag, default and position in the key of each column."""
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        return {
            table: [tuple(row[1:]) for row in connection.execute(f"PRAGMA table_info({table})")] for (table,) in tables
        }


def test_an_older_node_can_use_the_file_afterwards(path: Path) -> None:
    """It reads its own version, names the columns that it uses, and ignores unknown ones. A node of version 2 requires
    its own `user_version`, a node of version 3 one that is not higher than its own.
    """
    before = columns(path)
    open_sqlite_store(path, ManualClock()).close()
    after = columns(path)
    assert set(after) == {*before, "schema_version", "bulk_jobs", "bulk_parts"}
    for table, known in before.items():
        assert after[table][: len(known)] == known
        for name, _, must_have_value, default, key in after[table][len(known) :]:
            assert not key
            assert not must_have_value or default is not None, f"an insert without {table}.{name} would fail"
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        assert written_version(connection) == VERSION
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_migrated_file_is_not_migrated_again(path: Path) -> None:
    open_sqlite_store(path, ManualClock()).close()
    once = columns(path)
    with closing(sqlite3.connect(path)) as connection:
        version = connection.execute("PRAGMA schema_version").fetchone()
    open_sqlite_store(path, ManualClock()).close()
    assert columns(path) == once
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA schema_version").fetchone() == version, "tables were changed"


def test_a_new_file_has_the_same_tables_as_a_migrated_one(path: Path, folder: Path) -> None:
    for file in (path, folder / "new.sqlite"):
        open_sqlite_store(file, ManualClock()).close()
    assert columns(path) == columns(folder / "new.sqlite")


def test_an_older_process_that_has_the_file_open_continues_to_write(path: Path) -> None:
    """Statements of version 2 on a connection that was opened before the migration."""
    insert = (
        "INSERT OR REPLACE INTO jobs (dataset, shard, bucket, plan, start_offset, end_offset, groups, wants_keys,"
        " expires, state, epoch, worker, leased_until, failures, reason) VALUES"
        " ('metrics', 0, ?, 'p', 0, 1, '[0]', 1, ?, 'pending', 0, '', 0, 0, '')"
    )
    with closing(sqlite3.connect(path, isolation_level=None)) as old:
        old.execute(insert, (2_000, 10**15))
        with closing(open_sqlite_store(path, ManualClock())) as store:
            old.execute(insert, (2_001, 10**15))
            jobs = {job.bucket: job for job in store.jobs(history.SHARD)}
            for bucket in (2_000, 2_001):
                assert (jobs[bucket].state, jobs[bucket].life) == (JobState.PENDING, LIFE_OF_VERSION_2)
                assert jobs[bucket].renewals == 0
            assert read_result(store, jobs[2_000]) is None
