"""Partitions whose rows are stored up to some bucket, and their readiness."""

from dataclasses import replace

from strandline.recovery.cutting import Cutting
from strandline.recovery.periods import HOUR, Period
from strandline.recovery.readiness import (
    Readiness,
    StoredDataset,
    readiness,
)
from strandline.store.rows import CutRow, GroupRow, LateSamples, ManifestRows
from support.manifest_rows import beginning, cut, manifest, rows_of

MINUTE = 60_000
GROUPS = 2
H = 100  # An hour; with hours as buckets, also its bucket.


def stored(
    *manifests: ManifestRows | None,
    interval: int = HOUR,
    grace: int = 0,
    known_since: int = 0,
    groups: int = GROUPS,
    present: int = 10_000 * HOUR,
) -> StoredDataset:
    return StoredDataset("metrics", Cutting(interval, grace), groups, manifests, known_since, present)


def read_up_to(last: int, *, began: int = 90, late: dict[int, dict[int, int]] | None = None) -> ManifestRows:
    """A partition that began before bucket `began` + 1 and has all rows up to `last`, ten records a bucket. `late` are
    samples by bucket and hour, in group 1.
    """
    buckets = range(began + 1, last + 1)
    cuts = [beginning(began, 0), *(cut(bucket, (bucket - began - 1) * 10, (bucket - began) * 10) for bucket in buckets)]
    rows = [row for bucket in buckets for row in rows_of(bucket, range(GROUPS))]
    return manifest(cuts, [with_late(row, (late or {}).get(row.bucket, {})) for row in rows])


def with_late(row: GroupRow, hours: dict[int, int]) -> GroupRow:
    late = tuple(LateSamples(hour, samples) for hour, samples in hours.items()) if row.group == 1 else ()
    return replace(row, late=late)


def without(rows: ManifestRows, *places: tuple[int, int]) -> ManifestRows:
    return replace(rows, groups=tuple(row for row in rows.groups if (row.bucket, row.group) not in places))


def rewound(rows: ManifestRows, bucket: int) -> ManifestRows:
    return replace(rows, groups=tuple(replace(row, superseded=row.bucket >= bucket) for row in rows.groups))


def with_cut(rows: ManifestRows, changed: CutRow) -> ManifestRows:
    return replace(rows, cuts=tuple(changed if cut.bucket == changed.bucket else cut for cut in rows.cuts))


def readiness_of(dataset: StoredDataset, hour: int = H) -> Readiness:
    return readiness(dataset, Period(hour))


def closed_by_loss(rows: ManifestRows, *buckets: int) -> ManifestRows:
    """Each of the buckets was closed where a loss ends."""
    return replace(
        rows, cuts=tuple(replace(cut, lost_to=cut.end) if cut.bucket in buckets else cut for cut in rows.cuts)
    )
