"""Converts rows of the manifest to values of its columns, and back.

No column of a row is ever null: a null is a tombstone, and reads are limited to a number of tombstones. Absent values
are stored as a number that is otherwise impossible, or as an empty tuple.
"""

from dataclasses import dataclass
from typing import Any, Final

from strandline.store.cassandra.expiry import seconds_to_live
from strandline.store.rows import CutRow, GroupRow, IndexBucketRows, LateSamples, RecordIdentity, ShardState

NO_HEARTBEAT: Final = -1
"""Stands for `seen_at` after an owner has stopped."""

_NOTHING_LOST: Final = -1
CUT_GROUP: Final = -1
"""Stands for the group in a cut row."""

ClusteringKey = tuple[int, int]
Values = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A row, and the epoch of the owner that wrote it."""

    row: CutRow | GroupRow
    epoch: int


def clustering_key_of(row: CutRow | GroupRow) -> ClusteringKey:
    """Return the clustering key of a row in its shard's partition: bucket and group."""
    return row.bucket, row.group if isinstance(row, GroupRow) else CUT_GROUP


def cut_values(shard: Values, epoch: int, row: CutRow, present: int) -> Values:
    """Return the values for `WRITE_CUT`."""
    return (
        *shard,
        *clustering_key_of(row),
        epoch,
        row.expires,
        row.start,
        row.end,
        _NOTHING_LOST if row.lost_to is None else row.lost_to,
        row.reset,
        _identity_values(row.last),
        row.closed_early,
        seconds_to_live(row.expires - present),
    )


def group_values(shard: Values, epoch: int, row: GroupRow, present: int) -> Values:
    """Return the values for `WRITE_GROUP`."""
    return (
        *shard,
        *clustering_key_of(row),
        epoch,
        row.expires,
        row.attempt,
        row.segments,
        row.series,
        row.samples,
        (row.least_time, row.greatest_time),
        row.checksum,
        row.codec_version,
        row.data_expires,
        row.written_by,
        row.written_at,
        [(late.hour, late.samples) for late in row.late if late.hours == 1],
        [(late.hour, late.hours, late.samples) for late in row.late if late.hours > 1],
        row.superseded,
        (None, None, None) if row.index is None else (row.index.rows, row.index.checksum, row.index.attempt),
        seconds_to_live(row.expires - present, margins=2),
    )


def state_from(row: Any) -> ShardState:
    """Return the state in a row of `STATE` or `MANIFEST`."""
    return ShardState(
        epoch=row.epoch,
        owner=row.owner,
        seen_at=None if row.seen_at == NO_HEARTBEAT else row.seen_at,
        topic_id=row.topic_id,
        next_part_id=row.next_part_id,
        beats=row.beats or 0,
    )


def stored_from(row: Any) -> StoredRow:
    """Convert a row of `MANIFEST`."""
    return StoredRow(_cut_from(row) if row.group == CUT_GROUP else _group_from(row), row.written_epoch)


def _cut_from(row: Any) -> CutRow:
    return CutRow(
        bucket=row.bucket,
        start=row.start_offset,
        end=row.end_offset,
        expires=row.expires,
        lost_to=None if row.lost_to == _NOTHING_LOST else row.lost_to,
        reset=row.reset,
        last=_identity_from(row.last_record),
        # Null in rows of older versions.
        closed_early=bool(row.closed_early),
    )


def _identity_values(mark: RecordIdentity | None) -> Values:
    return (None,) * 4 if mark is None else (mark.offset, mark.time, mark.leader_epoch, mark.checksum)


def _identity_from(values: tuple[Any, ...] | None) -> RecordIdentity | None:
    # Null in rows of schema version 2.
    return None if values is None or values[0] is None else RecordIdentity(*values)


def _group_from(row: Any) -> GroupRow:
    least_time, greatest_time = row.sample_times
    index_rows, index_checksum, index_attempt = row.index_bucket
    return GroupRow(
        bucket=row.bucket,
        group=row.group,
        attempt=row.attempt,
        segments=row.segments,
        series=row.series,
        samples=row.samples,
        least_time=least_time,
        greatest_time=greatest_time,
        checksum=row.checksum,
        codec_version=row.codec_version,
        expires=row.expires,
        data_expires=row.data_expires,
        written_by=row.written_by,
        written_at=row.written_at,
        late=(
            # Null in rows of schema version 2. Ranges are older than the hours that are counted separately.
            *(LateSamples(hour, samples, hours) for hour, hours, samples in row.late_ranges or ()),
            *(LateSamples(hour, samples) for hour, samples in row.late),
        ),
        superseded=row.superseded,
        index=None if index_rows is None else IndexBucketRows(index_rows, index_checksum, index_attempt),
    )
