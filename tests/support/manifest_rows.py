"""Manifest rows with short constructors, for tests of checkpoints."""

from collections.abc import Iterable

from strandline.recovery.checkpoints import Progress, progress
from strandline.store.rows import CutRow, GroupRow, IndexBucketRows, ManifestRows, ShardId, ShardState

SHARD = ShardId("metrics", 3)
STATE = ShardState(epoch=1, owner="owner-1", seen_at=None, topic_id="topic-1", next_part_id=0)
NEVER = 10**15


def cut(bucket: int, start: int, end: int, *, reset: bool = False) -> CutRow:
    return CutRow(bucket, start, end, NEVER, reset=reset)


def beginning(bucket: int, offset: int) -> CutRow:
    """The row of a first start, or of a recreated topic."""
    return cut(bucket, offset, offset, reset=True)


def row(bucket: int, group: int, *, superseded: bool = False, index: bool = False) -> GroupRow:
    return GroupRow(
        bucket=bucket,
        group=group,
        attempt=f"attempt-{bucket}-{group}",
        segments=1,
        series=1,
        samples=1,
        least_time=0,
        greatest_time=0,
        checksum=b"",
        codec_version=1,
        data_expires=10**13,
        expires=NEVER,
        written_by="test",
        written_at=0,
        superseded=superseded,
        index=IndexBucketRows(1, b"", f"attempt-{bucket}-{group}") if index else None,
    )


def manifest(cuts: Iterable[CutRow], groups: Iterable[GroupRow] = ()) -> ManifestRows:
    """Rows in the order in which a store returns them: newest bucket first."""
    return ManifestRows(
        STATE,
        tuple(sorted(cuts, key=lambda row: -row.bucket)),
        tuple(sorted(groups, key=lambda row: (-row.bucket, row.group))),
    )


def known(cuts: Iterable[CutRow], rows: Iterable[GroupRow] = (), *, groups: int = 2) -> Progress:
    """The progress of a shard that has been read."""
    found = progress(manifest(cuts, rows), groups, SHARD)
    assert found is not None
    return found


def rows_of(bucket: int, groups: Iterable[int], *, superseded: bool = False) -> list[GroupRow]:
    return [row(bucket, group, superseded=superseded) for group in groups]
