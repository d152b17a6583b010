"""Manifests to rewind, and plans of rewinds."""

from strandline.recovery.cutting import Cutting
from strandline.recovery.offset_policy import LogState
from strandline.recovery.rewinding import (
    RewindPlan,
    Target,
    plan_rewind,
)
from strandline.store.rows import ManifestRows
from support.manifest_rows import SHARD, beginning, cut, manifest, rows_of

HOUR = 3_600_000
GRACE = 30_000
GROUPS = 3


def stored(first: int = 10, last: int = 20, *, size: int = 10) -> ManifestRows:
    """A first start at offset 100 before bucket `first`, and complete buckets with the same number of records up to
    `last`.
    """
    buckets = range(first, last + 1)
    cuts = [cut(bucket, 100 + (bucket - first) * size, 100 + (bucket + 1 - first) * size) for bucket in buckets]
    return manifest([beginning(first - 1, 100), *cuts], [row for b in buckets for row in rows_of(b, range(GROUPS))])


def log(start: int = 0, end: int = 100_000, topic_id: str = "topic-1") -> LogState:
    return LogState(topic_id, start, end)


def planned(rows: ManifestRows, target: Target, at: LogState | None = None, *, most_rows: int = 1_000) -> RewindPlan:
    return plan_rewind(
        SHARD, rows, target, at or log(), groups=GROUPS, cutting=Cutting(HOUR, GRACE), most_rows=most_rows
    )
