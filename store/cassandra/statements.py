"""All statements that are sent to Cassandra, and how each kind is sent.

Table names have the prefix `IN.`, which is replaced by the keyspace when a statement is prepared. The kind of a
statement determines its consistency level and whether it may be retried, so that callers need not.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from strandline.store.bulk_columns import JOB_COLUMNS, PART_COLUMNS


class Kind(Enum):
    """How a statement may be sent."""

    CONDITIONAL = auto()
    """A compare-and-set. It is sent once: only the caller can determine its result after a lost answer."""
    BATCHED = auto()
    """A write that is only sent in a batch with a compare-and-set, and applied only with it."""
    SERIAL_READ = auto()
    """A read of what compare-and-sets wrote. It completes pending ones, and sees all earlier ones."""
    PLAIN_WRITE = auto()
    """An idempotent write."""
    PLAIN_READ = auto()


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement in CQL. `page` is the number of rows per page. A compare-and-set is decided in the local data centre,
    or by all of them.
    """

    kind: Kind
    cql: str
    page: int = 5_000
    in_all_data_centres: bool = False


# Datasets and the version of the tables.

CREATE_DATASET: Final = Statement(
    Kind.CONDITIONAL,
    "INSERT INTO IN.datasets (dataset, flush_interval, groups, key_hash, partitions, data_centre)"
    " VALUES (?, ?, ?, ?, ?, ?) IF NOT EXISTS",
    in_all_data_centres=True,
)
SET_DATA_CENTRE: Final = Statement(
    Kind.CONDITIONAL,
    "UPDATE IN.datasets SET data_centre = ? WHERE dataset = ? IF data_centre = NULL",
    in_all_data_centres=True,
)
DATASET: Final = Statement(
    Kind.SERIAL_READ,
    "SELECT dataset, flush_interval, groups, key_hash, partitions, data_centre FROM IN.datasets WHERE dataset = ?",
)
CREATE_VERSION: Final = Statement(
    Kind.CONDITIONAL, "INSERT INTO IN.schema_version (product, version, written_version) VALUES (?, ?, ?) IF NOT EXISTS"
)
RAISE_VERSION: Final = Statement(
    Kind.CONDITIONAL, "UPDATE IN.schema_version SET written_version = ? WHERE product = ? IF written_version = ?"
)
MIN_VERSION: Final = Statement(Kind.SERIAL_READ, "SELECT version FROM IN.schema_version WHERE product = ?")
VERSIONS: Final = Statement(
    Kind.SERIAL_READ, "SELECT version, written_version FROM IN.schema_version WHERE product = ?"
)

SERVER_TIME: Final = Statement(Kind.PLAIN_READ, "SELECT toUnixTimestamp(now()) AS time FROM system.local")

# The manifest. Each commit and each takeover writes `epoch`, a touch does not: so its write time identifies the
# revision of the rows that were read. A row's write time is the revision of its commit.

STATE: Final = Statement(
    Kind.SERIAL_READ,
    "SELECT DISTINCT epoch, owner, seen_at, beats, topic_id, next_part_id, WRITETIME(epoch) AS revision"
    " FROM IN.manifest WHERE dataset = ? AND shard = ?",
)
TAKE_FIRST: Final = Statement(
    Kind.CONDITIONAL,
    "UPDATE IN.manifest SET epoch = ?, owner = ?, seen_at = ?, beats = 0, topic_id = ?, next_part_id = 0"
    " WHERE dataset = ? AND shard = ? IF epoch = NULL AND owner = NULL",
)
TAKE: Final = Statement(
    Kind.CONDITIONAL,
    "UPDATE IN.manifest SET epoch = ?, owner = ?, seen_at = ?, beats = 0"
    " WHERE dataset = ? AND shard = ? IF epoch = ? AND owner = ?",
)
TOUCH: Final = Statement(
    Kind.CONDITIONAL,
    "UPDATE IN.manifest SET seen_at = ?, beats = ? WHERE dataset = ? AND shard = ? IF epoch = ? AND owner = ?",
)
COMMIT: Final = Statement(
    Kind.CONDITIONAL,
    "UPDATE IN.manifest SET epoch = ? WHERE dataset = ? AND shard = ? IF epoch = ? AND owner = ?",
)
COMMIT_RAISING: Final = Statement(
    Kind.CONDITIONAL,
    "UPDATE IN.manifest SET epoch = ?, next_part_id = ?"
    " WHERE dataset = ? AND shard = ? IF epoch = ? AND owner = ? AND next_part_id <= ?",
)
SET_TOPIC: Final = Statement(Kind.BATCHED, "UPDATE IN.manifest SET topic_id = ? WHERE dataset = ? AND shard = ?")
WRITE_CUT: Final = Statement(
    Kind.BATCHED,
    'INSERT INTO IN.manifest (dataset, shard, bucket, "group", written_epoch, expires,'
    " start_offset, end_offset, lost_to, reset, last_record, closed_early)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) USING TTL ?",
)
WRITE_GROUP: Final = Statement(
    Kind.BATCHED,
    'INSERT INTO IN.manifest (dataset, shard, bucket, "group", written_epoch, expires,'
    " attempt, segments, series, samples, sample_times, checksum, codec_version, data_expires, written_by,"
    " written_at, late, late_ranges, superseded, index_bucket)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) USING TTL ?",
)
MANIFEST: Final = Statement(
    Kind.SERIAL_READ,
    "SELECT epoch, owner, seen_at, beats, topic_id, next_part_id, WRITETIME(epoch) AS revision,"
    ' bucket, "group", written_epoch, WRITETIME(written_epoch) AS row_revision, expires,'
    " start_offset, end_offset, lost_to, reset, last_record, closed_early,"
    " attempt, segments, series, samples, sample_times, checksum, codec_version, data_expires, written_by,"
    " written_at, late, late_ranges, superseded, index_bucket FROM IN.manifest"
    " WHERE dataset = ? AND shard = ? AND bucket >= ? AND bucket <= ?",
)

# Large values. Their pages have a few megabytes.

WRITE_SEGMENT: Final = Statement(
    Kind.PLAIN_WRITE,
    'INSERT INTO IN.segments (dataset, shard, bucket, "group", attempt, first, seq, expires, data)'
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) USING TTL ?",
)
SEGMENTS_FROM: Final = Statement(
    Kind.PLAIN_READ,
    "SELECT first, seq, data FROM IN.segments"
    ' WHERE dataset = ? AND shard = ? AND bucket = ? AND "group" = ? AND attempt = ? AND first >= ?',
    page=64,
)
SEGMENTS_BETWEEN: Final = Statement(
    Kind.PLAIN_READ,
    "SELECT first, seq, data FROM IN.segments"
    ' WHERE dataset = ? AND shard = ? AND bucket = ? AND "group" = ? AND attempt = ? AND first >= ? AND first <= ?',
    page=64,
)
SEGMENT_UP_TO: Final = Statement(
    Kind.PLAIN_READ,
    "SELECT first, seq, data FROM IN.segments"
    ' WHERE dataset = ? AND shard = ? AND bucket = ? AND "group" = ? AND attempt = ? AND first <= ?'
    " ORDER BY first DESC, seq DESC LIMIT 1",
)
SEGMENT_BELOW: Final = Statement(
    Kind.PLAIN_READ,
    "SELECT first, seq, data FROM IN.segments"
    ' WHERE dataset = ? AND shard = ? AND bucket = ? AND "group" = ? AND attempt = ? AND first < ?'
    " ORDER BY first DESC, seq DESC LIMIT 1",
)

WRITE_INDEX_ROW: Final = Statement(
    Kind.PLAIN_WRITE,
    "INSERT INTO IN.index_buckets (dataset, shard, bucket, attempt, seq, expires, data)"
    " VALUES (?, ?, ?, ?, ?, ?, ?) USING TTL ?",
)
INDEX_ROWS: Final = Statement(
    Kind.PLAIN_READ,
    "SELECT seq, data FROM IN.index_buckets WHERE dataset = ? AND shard = ? AND bucket = ? AND attempt = ?",
    page=4,
)
WRITE_RESULT_ROW: Final = Statement(
    Kind.PLAIN_WRITE,
    "INSERT INTO IN.job_results (dataset, shard, bucket, attempt, kind, seq, expires, data)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?) USING TTL ?",
)
RESULT_ROWS: Final = Statement(
    Kind.PLAIN_READ,
    "SELECT kind, seq, data FROM IN.job_results"
    " WHERE dataset = ? AND shard = ? AND bucket = ? AND attempt = ? AND kind = ?",
    page=4,
)
RESULT_ROW: Final = Statement(
    Kind.PLAIN_READ,
    "SELECT kind, seq, data FROM IN.job_results"
    " WHERE dataset = ? AND shard = ? AND bucket = ? AND attempt = ? AND kind = ? AND seq = ?",
)

# Replay jobs, bulk jobs and parts. Rows are never inserted, only updated: so a row exists exactly as long as its
# values. The condition is the stamp, which is new with each write, of a row that was read and found unchanged.


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """The statements of a table whose rows have a stamp. A key has partition columns and one clustering column."""

    put: Statement
    """Parameters: TTL, new stamp, columns, key, old stamp."""
    remove: Statement
    """Parameters: key, stamp."""
    rows: Statement
    """The rows of a partition: clustering column, stamp, columns."""
    between: Statement
    """The same for a range of the clustering column (inclusive)."""


def _compared(
    table: str, partition: tuple[str, ...], row: str, columns: tuple[str, ...], *, page: int = 5_000
) -> ComparedTable:
    changes = ", ".join(f"{column} = ?" for column in ("stamp", *columns))
    at = " AND ".join(f"{column} = ?" for column in (*partition, row))
    within = " AND ".join(f"{column} = ?" for column in partition)
    select = f"SELECT {', '.join((row, 'stamp', *columns))} FROM IN.{table} WHERE {within}"  # noqa: S608
    put = f"UPDATE IN.{table} USING TTL ? SET {changes} WHERE {at} IF stamp = ?"  # noqa: S608
    remove = f"DELETE FROM IN.{table} WHERE {at} IF stamp = ?"  # noqa: S608
    return ComparedTable(
        put=Statement(Kind.CONDITIONAL, put),
        remove=Statement(Kind.CONDITIONAL, remove),
        rows=Statement(Kind.SERIAL_READ, select, page),
        between=Statement(Kind.SERIAL_READ, f"{select} AND {row} >= ? AND {row} <= ?", page),
    )


JOBS: Final = _compared(
    "jobs",
    ("dataset", "shard"),
    "bucket",
    (
        "plan",
        "start_offset",
        "end_offset",
        "groups",
        "wants_keys",
        "expires",
        "life",
        "state",
        "epoch",
        "worker",
        "leased_until",
        "renewals",
        "failures",
        "reason",
        "settings",
    ),
)
# A job can have two texts of 64 KB, a part four.
BULK_JOBS: Final = _compared("bulk_jobs", ("dataset",), "job", JOB_COLUMNS, page=50)
BULK_PARTS: Final = _compared("bulk_parts", ("dataset", "job"), "part", PART_COLUMNS, page=500)

ALL: Final = (
    *(value for value in list(globals().values()) if isinstance(value, Statement)),
    *(one for table in (JOBS, BULK_JOBS, BULK_PARTS) for one in (table.put, table.remove, table.rows, table.between)),
)
"""All statements. They are prepared when a store is opened, so that one that does not match the tables is detected
then.
"""
