"""Figures of a shard's buckets, from the bitmaps and columns in memory and from the manifest."""

from collections import Counter
from collections.abc import Mapping

import numpy as np

from strandline.index.part_columns import NO_BUCKET
from strandline.node.query.shard_requests import BucketsRequest
from strandline.node.shard.bucket_report import BucketFigures
from strandline.node.shard.closed_bucket import ClosedBucket
from strandline.node.shard.shard import Shard
from strandline.store.buffer.contents import BufferStatus
from strandline.store.buffer.frozen_buffer import FrozenBuffer
from strandline.store.rows import GroupRow

OPEN, CLOSED, STORED = "open", "closed", "stored"


def bucket_figures(shard: Shard, request: BucketsRequest) -> tuple[BucketFigures, ...]:
    """The newest buckets of the range, oldest first. Thread-safe."""
    # A bucket goes from open to closed to stored. Reading in the same order misses none.
    opened, buffer = shard.index.open, shard.buffer
    closed = {one.bucket: one for one in shard.flusher.closed_buckets()}
    now = shard.parts.clock.now_ms()
    rows: dict[int, list[GroupRow]] = {}
    for row in shard.view.rows().groups:
        if not row.superseded and row.data_expires > now:
            rows.setdefault(row.bucket, []).append(row)
    interval = shard.parts.options.policy.flush_interval
    wanted = sorted({opened.bucket, buffer.bucket, *closed, *rows})
    if request.within is not None:
        within = request.within
        wanted = [one for one in wanted if one * interval <= within.last and (one + 1) * interval > within.first]
    newest = _newest_records(shard)
    found = []
    for bucket in wanted[len(wanted) - min(request.limit, len(wanted)) :]:
        stored = rows.get(bucket, [])
        state = _state(bucket, opened.bucket, closed, is_complete=len(stored) == shard.parts.options.groups)
        waiting = buffer.status() if bucket == buffer.bucket else _buffered(closed.get(bucket))
        is_open = bucket == opened.bucket
        found.append(
            BucketFigures(
                shard.parts.options.shard.shard,
                bucket,
                bucket * interval,
                (bucket + 1) * interval,
                # Safe without a lock: the bitmap changes in one call of C, which holds the GIL.
                active=len(opened.active) if is_open else len(shard.index.active_in(bucket)),
                changed=len(opened.changed) if is_open else _changed(closed.get(bucket), newest[bucket]),
                samples=sum(row.samples for row in stored) + (waiting.samples if waiting is not None else 0),
                bytes=waiting.memory_bytes + waiting.spilled_bytes if waiting is not None else 0,
                state=state,
                segments=sum(row.segments for row in stored),
            )
        )
    return tuple(found)


def _state(bucket: int, opened: int, closed: Mapping[int, ClosedBucket], *, is_complete: bool) -> str:
    if bucket in closed or (bucket < opened and not is_complete):
        return CLOSED
    return STORED if bucket < opened and is_complete else OPEN


def _newest_records(shard: Shard) -> Counter[int]:
    """The number of keys whose newest record is in each bucket."""
    rows = shard.index.columns.rows
    newest = rows.newest[rows.newest != NO_BUCKET]
    if not len(newest):
        return Counter()
    first = int(newest.min())
    return Counter({first + index: count for index, count in enumerate(np.bincount(newest - first).tolist()) if count})


def _changed(closed: ClosedBucket | None, newest: int) -> int:
    return len(closed.index.bucket.part_ids) if closed is not None and closed.index is not None else newest


def _buffered(closed: ClosedBucket | None) -> BufferStatus | None:
    return closed.samples.status() if closed is not None and isinstance(closed.samples, FrozenBuffer) else None
