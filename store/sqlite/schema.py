"""The tables of the file, and the marks by which it is known.

Tables whose rows expire have an index over `expires`, by which those are found and deleted. Beside a large value it
stands first: SQLite reads a row from its beginning, and the many pages of a value only if they are wanted.
"""

import sqlite3
from pathlib import Path
from typing import Final

from strandline.store.protocol import StoreRefused

# "Strl", in the place where SQLite keeps a mark of whose file it is.
APPLICATION_ID: Final = 0x5374726C
VERSION: Final = 2

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


def ensure_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables in a file that has none, within the caller's transaction.

    Raises `StoreRefused` for a file that something else made, or a version of ours that this one does not know.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if (application, version, tables) == (0, 0, 0):
        for statement in _TABLES:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    elif application != APPLICATION_ID:
        raise StoreRefused(
            f"{path} is a SQLite file, but not a Strandline store (its application id is {application})",
            remedy="Give the store a file of its own, or none to make one",
        )
    elif version > VERSION:
        raise StoreRefused(
            f"the store {path} has schema version {version}, and this Strandline knows versions up to {VERSION}",
            remedy="Use the Strandline that wrote it, or a newer one",
        )
    elif version < VERSION:
        raise StoreRefused(
            f"the store {path} has schema version {version}, which no released Strandline has written",
            remedy="Start with a new file",
        )
