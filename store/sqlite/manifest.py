"""Datasets, ownership and the manifest, as statements within a transaction of the caller."""

import json
import sqlite3
from typing import Any

from strandline.store.protocol import Fenced
from strandline.store.rows import (
    CutRow,
    DatasetShape,
    GroupRow,
    IndexBucketRows,
    LateSamples,
    ManifestRows,
    ManifestWrite,
    Ownership,
    RecordIdentity,
    ShardId,
    ShardState,
)

# Bucket numbers have 64 bits; these stand for an open end.
_FIRST_BUCKET, _LAST_BUCKET = -(2**63), 2**63 - 1


def create_dataset(connection: sqlite3.Connection, shape: DatasetShape) -> DatasetShape:
    """Create a dataset unless it exists. Return the stored shape."""
    stored = read_dataset(connection, shape.dataset)
    if stored is not None:
        return stored
    connection.execute(
        "INSERT INTO datasets (dataset, flush_interval, groups, key_hash, partitions) VALUES (?, ?, ?, ?, ?)",
        (shape.dataset, shape.flush_interval, shape.groups, shape.key_hash, shape.partitions),
    )
    return shape


def read_dataset(connection: sqlite3.Connection, name: str) -> DatasetShape | None:
    """Return the shape of a dataset, if it exists."""
    row = connection.execute(
        "SELECT dataset, flush_interval, groups, key_hash, partitions FROM datasets WHERE dataset = ?", (name,)
    ).fetchone()
    return None if row is None else DatasetShape(*row)


def read_state(connection: sqlite3.Connection, shard: ShardId) -> ShardState | None:
    """Return a shard's state; None if the shard never had an owner."""
    row = connection.execute(
        "SELECT epoch, owner, seen_at, topic_id, next_part_id, beats FROM shards WHERE dataset = ? AND shard = ?",
        (shard.dataset, shard.shard),
    ).fetchone()
    return None if row is None else ShardState(*row)


def take(
    connection: sqlite3.Connection, shard: ShardId, owner: str, after: ShardState | None, *, now: int, topic_id: str
) -> Ownership | None:
    """Make `owner` the owner, if epoch and owner are still those of `after`."""
    state = read_state(connection, shard)
    if _holder(state) != _holder(after):
        return None
    epoch = 1 if state is None else state.epoch + 1
    connection.execute(
        "INSERT INTO shards (dataset, shard, epoch, owner, seen_at, topic_id, next_part_id, beats)"
        " VALUES (?, ?, ?, ?, ?, ?, 0, 0) ON CONFLICT DO UPDATE"
        " SET epoch = excluded.epoch, owner = excluded.owner, seen_at = excluded.seen_at, beats = 0",
        (shard.dataset, shard.shard, epoch, owner, now, topic_id),
    )
    return Ownership(shard, epoch, owner)


def touch(connection: sqlite3.Connection, ownership: Ownership, seen_at: int | None, beats: int) -> None:
    """Write a heartbeat. Raises `Fenced`."""
    _check_owner(connection, ownership)
    connection.execute(
        "UPDATE shards SET seen_at = ?, beats = ? WHERE dataset = ? AND shard = ?",
        (seen_at, beats, ownership.shard.dataset, ownership.shard.shard),
    )


def commit(connection: sqlite3.Connection, ownership: Ownership, write: ManifestWrite) -> None:
    """Write rows into a manifest. Raises `Fenced`."""
    _check_owner(connection, ownership)
    shard = (ownership.shard.dataset, ownership.shard.shard)
    connection.executemany(
        "INSERT OR REPLACE INTO cuts (dataset, shard, bucket, start_offset, end_offset, expires, lost_to, reset,"
        " last_offset, last_time, last_leader_epoch, last_checksum, closed_early)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(*shard, *_cut_values(row)) for row in write.cuts],
    )
    connection.executemany(
        "INSERT OR REPLACE INTO flush_groups (dataset, shard, bucket, flush_group, attempt, segments, series, samples,"
        " least_time, greatest_time, checksum, codec_version, expires, data_expires, written_by, written_at, late,"
        " late_ranges, superseded, index_rows, index_checksum, index_attempt)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(*shard, *_group_values(row)) for row in write.groups],
    )
    connection.execute(
        "UPDATE shards SET next_part_id = max(next_part_id, ifnull(?, next_part_id)), topic_id = ifnull(?, topic_id)"
        " WHERE dataset = ? AND shard = ?",
        (write.next_part_id, write.topic_id, *shard),
    )


def read_manifest(
    connection: sqlite3.Connection, shard: ShardId, *, first: int | None, last: int | None
) -> ManifestRows | None:
    """Return the rows of buckets `first` to `last`; None if the shard has no state."""
    state = read_state(connection, shard)
    if state is None:
        return None
    wanted = (
        shard.dataset,
        shard.shard,
        _FIRST_BUCKET if first is None else first,
        _LAST_BUCKET if last is None else last,
    )
    cuts = connection.execute(
        "SELECT bucket, start_offset, end_offset, expires, lost_to, reset, last_offset, last_time, last_leader_epoch,"
        " last_checksum, closed_early FROM cuts WHERE dataset = ? AND shard = ? AND bucket BETWEEN ? AND ?"
        " ORDER BY bucket DESC",
        wanted,
    )
    groups = connection.execute(
        "SELECT bucket, flush_group, attempt, segments, series, samples, least_time, greatest_time, checksum,"
        " codec_version, expires, data_expires, written_by, written_at, late, late_ranges, superseded, index_rows,"
        " index_checksum, index_attempt FROM flush_groups WHERE dataset = ? AND shard = ? AND bucket BETWEEN ? AND ?"
        " ORDER BY bucket DESC, flush_group",
        wanted,
    )
    return ManifestRows(state, tuple(_cut(*row) for row in cuts), tuple(_group(*row) for row in groups))


def _holder(state: ShardState | None) -> tuple[int, str] | None:
    return None if state is None else (state.epoch, state.owner)


def _check_owner(connection: sqlite3.Connection, ownership: Ownership) -> None:
    state = read_state(connection, ownership.shard)
    if _holder(state) == (ownership.epoch, ownership.owner):
        return
    now = "the shard has no owner" if state is None else f"{state.owner!r} owns it in epoch {state.epoch}"
    raise Fenced(
        f"{ownership.owner!r} of epoch {ownership.epoch} may not write shard {ownership.shard}: {now}",
        remedy="Stop writing to it; a restart takes the shard again",
    )


def _cut(*values: Any) -> CutRow:
    *plain, reset, offset, time, leader_epoch, checksum, closed_early = values
    last = None if offset is None else RecordIdentity(offset, time, leader_epoch, checksum)
    fields: tuple[Any, ...] = (*plain, bool(reset), last, bool(closed_early))
    return CutRow(*fields)


def _cut_values(row: CutRow) -> tuple[object, ...]:
    last: tuple[int | None, ...] = (None,) * 4
    if row.last is not None:
        last = (row.last.offset, row.last.time, row.last.leader_epoch, row.last.checksum)
    return (row.bucket, row.start, row.end, row.expires, row.lost_to, row.reset, *last, row.closed_early)


def _group_values(row: GroupRow) -> tuple[object, ...]:
    return (
        row.bucket,
        row.group,
        row.attempt,
        row.segments,
        row.series,
        row.samples,
        row.least_time,
        row.greatest_time,
        row.checksum,
        row.codec_version,
        row.expires,
        row.data_expires,
        row.written_by,
        row.written_at,
        json.dumps([(late.hour, late.samples) for late in row.late if late.hours == 1]),
        json.dumps([(late.hour, late.hours, late.samples) for late in row.late if late.hours > 1]),
        row.superseded,
        None if row.index is None else row.index.rows,
        None if row.index is None else row.index.checksum,
        None if row.index is None else row.index.attempt,
    )


def _group(*values: Any) -> GroupRow:
    *plain, late, late_ranges, superseded, index_rows, index_checksum, index_attempt = values
    fields: tuple[Any, ...] = (
        *plain,
        (
            # Ranges are older than the hours that are counted separately.
            *(LateSamples(hour, samples, hours) for hour, hours, samples in json.loads(late_ranges)),
            *(LateSamples(hour, samples) for hour, samples in json.loads(late)),
        ),
        bool(superseded),
        None if index_rows is None else IndexBucketRows(index_rows, index_checksum, index_attempt),
    )
    return GroupRow(*fields)
