"""Every statement that is sent to Cassandra, and how each is sent.

Names of tables stand without their keyspace, behind `IN.`: it is put in when a statement is prepared. Statements of one
kind are alike in what may be done with them, so that nobody has to remember it where they are used.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from strandline.store.bulk_columns import JOB_COLUMNS, PART_COLUMNS


class Kind(Enum):
    """What may be done with a statement."""

    CONDITIONAL = auto()
    """A compare-and-set. It is sent once: only who knows what it means can tell what came of it."""
    BATCHED = auto()
    """A write that is only sent in one batch with a compare-and-set, and done only if that is."""
    SERIAL_READ = auto()
    """A read of what compare-and-sets wrote. It completes what is under way, and sees all that came before it."""
    PLAIN_WRITE = auto()
    """A write that may be sent any number of times."""
    PLAIN_READ = auto()


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement in CQL. `page` is how many rows are read at once. A compare-and-set is decided in the local data
    centre, or by all of them.
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
LEAST_VERSION: Final = Statement(Kind.SERIAL_READ, "SELECT version FROM IN.schema_version WHERE product = ?")
VERSIONS: Final = Statement(
    Kind.SERIAL_READ, "SELECT version, written_version FROM IN.schema_version WHERE product = ?"
)

SERVER_TIME: Final = Statement(Kind.PLAIN_READ, "SELECT toUnixTimestamp(now()) AS time FROM system.local")

# The manifest. Each commit and each taking writes `epoch`, a touch does not: so the time at which it was written tells
# which revision of the rows was read. A row has the revision of the commit that wrote it.

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

# Large values. The pages that they are read in have a few megabytes.

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

# Replay jobs, bulk jobs and their parts. None is ever inserted, only updated: so a row is there exactly as long as its
# values are. What is compared is the stamp, which is new with each write, of a row that was read and found to be the
# expected one.


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """The statements of a table whose rows have a stamp. A key has partition columns, and one behind them."""

    put: Statement
    """Time-to-live, new stamp, columns, key, old stamp."""
    remove: Statement
    """Key, stamp."""
    rows: Statement
    """Those of a partition: what tells them apart, stamp, columns."""
    between: Statement
    """The same of a range, both ends included."""


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
# A job may have two texts of 64 KB, and a part four.
BULK_JOBS: Final = _compared("bulk_jobs", ("dataset",), "job", JOB_COLUMNS, page=50)
BULK_PARTS: Final = _compared("bulk_parts", ("dataset", "job"), "part", PART_COLUMNS, page=500)

ALL: Final = (
    *(value for value in list(globals().values()) if isinstance(value, Statement)),
    *(one for table in (JOBS, BULK_JOBS, BULK_PARTS) for one in (table.put, table.remove, table.rows, table.between)),
)
"""All of them: they are prepared when a store is opened, so that one which does not fit the tables is found then."""
