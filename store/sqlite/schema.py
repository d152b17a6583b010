"""The tables of the file, and how the file is identified.

A file of an older version is upgraded when it is opened, in one transaction. An upgrade only adds tables and columns
with a default, so that processes of older versions that have the file open continue to work. Those of version 2 only
accept a file whose `user_version` is their own. So `user_version` is the lowest version that can use the file, and the
version of the tables is stored in a table.

Tables whose rows expire have an index on `expires`, by which expired rows are found. That column precedes large values:
SQLite reads a row from its beginning, and the overflow pages of a value only if they are needed.
"""

import sqlite3
from pathlib import Path
from typing import Final

from strandline.store.jobs import LIFE_OF_VERSION_2
from strandline.store.protocol import StoreRefused

# "Strl", in SQLite's header field for the application.
APPLICATION_ID: Final = 0x5374726C
VERSION: Final = 4
MIN_VERSION: Final = 2
"""The lowest version that can use a file of `VERSION`, and that can be upgraded to it."""

# As created by version 2; later additions follow below.
_TABLES: Final = (
    """
    CREATE TABLE datasets (
        dataset TEXT PRIMARY KEY,
        flush_interval INTEGER NOT NULL,
        groups INTEGER NOT NULL,
        key_hash TEXT NOT NULL,
        partitions INTEGER NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE shards (
        dataset TEXT NOT NULL,
        shard INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        owner TEXT NOT NULL,
        seen_at INTEGER,
        topic_id TEXT NOT NULL,
        next_part_id INTEGER NOT NULL,
        PRIMARY KEY (dataset, shard)
    ) STRICT
    """,
    """
    CREATE TABLE cuts (
        dataset TEXT NOT NULL,
        shard INTEGER NOT NULL,
        bucket INTEGER NOT NULL,
        start_offset INTEGER NOT NULL,
        end_offset INTEGER NOT NULL,
        expires INTEGER NOT NULL,
        lost_to INTEGER,
        reset INTEGER NOT NULL,
        PRIMARY KEY (dataset, shard, bucket)
    ) STRICT
    """,
    """
    CREATE TABLE flush_groups (
        dataset TEXT NOT NULL,
        shard INTEGER NOT NULL,
        bucket INTEGER NOT NULL,
        flush_group INTEGER NOT NULL,
        attempt TEXT NOT NULL,
        segments INTEGER NOT NULL,
        series INTEGER NOT NULL,
        samples INTEGER NOT NULL,
        least_time INTEGER,
        greatest_time INTEGER,
        checksum BLOB NOT NULL,
        codec_version INTEGER NOT NULL,
        expires INTEGER NOT NULL,
        data_expires INTEGER NOT NULL,
        written_by TEXT NOT NULL,
        written_at INTEGER NOT NULL,
        late TEXT NOT NULL,           -- JSON: [[hour, samples], ...]
        superseded INTEGER NOT NULL,
        index_rows INTEGER,
        index_checksum BLOB,
        index_attempt TEXT,
        PRIMARY KEY (dataset, shard, bucket, flush_group)
    ) STRICT
    """,
    """
    CREATE TABLE segments (
        dataset TEXT NOT NULL,
        shard INTEGER NOT NULL,
        bucket INTEGER NOT NULL,
        flush_group INTEGER NOT NULL,
        attempt TEXT NOT NULL,
        first BLOB NOT NULL,
        seq INTEGER NOT NULL,
        expires INTEGER NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (dataset, shard, bucket, flush_group, attempt, first, seq)
    ) STRICT
    """,
    """
    CREATE TABLE index_buckets (
        dataset TEXT NOT NULL,
        shard INTEGER NOT NULL,
        bucket INTEGER NOT NULL,
        attempt TEXT NOT NULL,
        seq INTEGER NOT NULL,
        expires INTEGER NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (dataset, shard, bucket, attempt, seq)
    ) STRICT
    """,
    """
    CREATE TABLE jobs (
        dataset TEXT NOT NULL,
        shard INTEGER NOT NULL,
        bucket INTEGER NOT NULL,
        plan TEXT NOT NULL,
        start_offset INTEGER NOT NULL,
        end_offset INTEGER NOT NULL,
        groups TEXT NOT NULL,         -- JSON: [group, ...]
        wants_keys INTEGER NOT NULL,
        expires INTEGER NOT NULL,
        state TEXT NOT NULL,
        epoch INTEGER NOT NULL,
        worker TEXT NOT NULL,
        leased_until INTEGER NOT NULL,
        failures INTEGER NOT NULL,
        reason TEXT NOT NULL,
        PRIMARY KEY (dataset, shard, bucket)
    ) STRICT
    """,
    """
    CREATE TABLE job_results (
        dataset TEXT NOT NULL,
        shard INTEGER NOT NULL,
        bucket INTEGER NOT NULL,
        attempt TEXT NOT NULL,
        kind TEXT NOT NULL,
        seq INTEGER NOT NULL,
        expires INTEGER NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (dataset, shard, bucket, attempt, kind, seq)
    ) STRICT
    """,
    "CREATE INDEX cuts_by_expiry ON cuts (expires)",
    "CREATE INDEX flush_groups_by_expiry ON flush_groups (expires)",
    "CREATE INDEX segments_by_expiry ON segments (expires)",
    "CREATE INDEX index_buckets_by_expiry ON index_buckets (expires)",
    "CREATE INDEX jobs_by_expiry ON jobs (expires)",
    "CREATE INDEX job_results_by_expiry ON job_results (expires)",
)


# Table, column and type: added in version 3, the last one in version 4.
_ADDED: Final = (
    ("shards", "beats", "INTEGER NOT NULL DEFAULT 0"),
    ("cuts", "last_offset", "INTEGER"),
    ("cuts", "last_time", "INTEGER"),
    ("cuts", "last_leader_epoch", "INTEGER"),
    ("cuts", "last_checksum", "INTEGER"),
    ("flush_groups", "late_ranges", "TEXT NOT NULL DEFAULT '[]'"),  # JSON: [[first hour, hours, samples], ...]
    ("jobs", "life", f"INTEGER NOT NULL DEFAULT {LIFE_OF_VERSION_2}"),
    ("jobs", "renewals", "INTEGER NOT NULL DEFAULT 0"),
    ("jobs", "settings", "TEXT NOT NULL DEFAULT ''"),
    ("cuts", "closed_early", "INTEGER NOT NULL DEFAULT 0"),
)

# Added in version 4.
_ADDED_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS bulk_jobs (
        dataset TEXT NOT NULL,
        job TEXT NOT NULL,
        expires INTEGER NOT NULL,
        kind TEXT NOT NULL,
        spec TEXT NOT NULL,           -- JSON
        plan_hash TEXT NOT NULL,
        parts INTEGER NOT NULL,
        life INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        state TEXT NOT NULL,
        version INTEGER NOT NULL,
        window INTEGER NOT NULL,
        wanted TEXT NOT NULL,
        reason TEXT NOT NULL,
        changed_at INTEGER NOT NULL,
        due_at INTEGER NOT NULL,
        idle_since INTEGER NOT NULL,
        expires_after INTEGER NOT NULL,
        report TEXT NOT NULL,         -- JSON
        PRIMARY KEY (dataset, job)
    ) STRICT
    """,
    """
    CREATE TABLE IF NOT EXISTS bulk_parts (
        dataset TEXT NOT NULL,
        job TEXT NOT NULL,
        part INTEGER NOT NULL,
        expires INTEGER NOT NULL,
        source TEXT NOT NULL,         -- JSON
        life INTEGER NOT NULL,
        state TEXT NOT NULL,
        epoch INTEGER NOT NULL,
        worker TEXT NOT NULL,
        leased_until INTEGER NOT NULL,
        renewals INTEGER NOT NULL,
        failures INTEGER NOT NULL,
        reason TEXT NOT NULL,
        window INTEGER NOT NULL,
        counts TEXT NOT NULL,         -- JSON
        outcome TEXT NOT NULL,        -- JSON
        PRIMARY KEY (dataset, job, part)
    ) STRICT
    """,
    "CREATE INDEX IF NOT EXISTS bulk_jobs_by_expiry ON bulk_jobs (expires)",
    "CREATE INDEX IF NOT EXISTS bulk_parts_by_expiry ON bulk_parts (expires)",
)


def ensure_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Create the tables in an empty file, and add what those of an older version lack, within the caller's transaction.

    Raises `StoreRefused` for a file of another program, or of a version that this one does not support.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (least,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if (application, least, tables) == (0, 0, 0):
        for statement in _TABLES:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {MIN_VERSION}")
    elif application != APPLICATION_ID:
        raise StoreRefused(
            f"{path} is a SQLite file, but not a Strandline store (its application id is {application})",
            remedy="Use another path; a missing file is created",
        )
    elif least > VERSION:
        raise StoreRefused(
            f"the store {path} needs at least schema version {least}, and this Strandline has version {VERSION}",
            remedy="Use the Strandline that migrated it, or a newer one",
        )
    elif least < MIN_VERSION:
        raise StoreRefused(
            f"the store {path} has schema version {least}, which no released Strandline has written",
            remedy="Start with a new file",
        )
    if written_version(connection) < VERSION:
        _migrate(connection)


def written_version(connection: sqlite3.Connection) -> int:
    """Return the version of a file's tables."""
    has_version = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'schema_version'").fetchone()
    if has_version is None:
        return MIN_VERSION
    (version,) = connection.execute("SELECT written_version FROM schema_version").fetchone()
    return int(version)


def _migrate(connection: sqlite3.Connection) -> None:
    for table, column, kind in _ADDED:
        if column not in {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}:
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")
    for statement in _ADDED_TABLES:
        connection.execute(statement)
    connection.execute("CREATE TABLE IF NOT EXISTS schema_version (written_version INTEGER NOT NULL) STRICT")
    connection.execute("DELETE FROM schema_version")
    connection.execute("INSERT INTO schema_version VALUES (?)", (VERSION,))
