"""Pins the manifest rows that a bulk read uses. Pure functions over manifests.

A row is pinned by its attempt and checksum. Segments are written once under an attempt, so a pinned row has the same
samples as long as its data is stored.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from strandline.errors import Fatal
from strandline.recovery.checkpoints import EXPIRY_SKEW_MS, designated_group, index_rows
from strandline.store.rows import GroupRow, ManifestRows, ShardId
from strandline.time_range import TimeRange


class PinnedRowExpired(Fatal):
    """Data that a bulk read needs has expired, or will expire within a minute."""


@dataclass(frozen=True, slots=True, order=True)
class RowId:
    """Identifies the content of a stored row: equal ids have equal samples."""

    shard: int
    bucket: int
    group: int
    checksum: str

    @property
    def key(self) -> tuple[int, int, int]:
        """Shard, bucket and group."""
        return self.shard, self.bucket, self.group


@dataclass(frozen=True, slots=True)
class PinnedRow:
    """The columns of a group row that are needed to read its samples. `checksum` is over its segments."""

    shard: int
    bucket: int
    group: int
    attempt: str
    segments: int
    series: int
    samples: int
    least_time: int
    greatest_time: int
    checksum: str
    data_expires: int

    @property
    def id(self) -> RowId:
        """The identity of its content."""
        return RowId(self.shard, self.bucket, self.group, self.checksum)

    @property
    def name(self) -> str:
        """The name in messages."""
        return f"bucket {self.bucket}, group {self.group} of shard {self.shard}"

    def overlaps(self, times: TimeRange) -> bool:
        """Whether it may contain samples of a time range."""
        return self.least_time <= times.last and self.greatest_time >= times.first

    @classmethod
    def of(cls, shard: int, row: GroupRow) -> "PinnedRow | None":
        """From a row of a manifest; None if it has no samples."""
        if row.least_time is None or row.greatest_time is None:
            return None
        return cls(
            shard,
            row.bucket,
            row.group,
            row.attempt,
            row.segments,
            row.series,
            row.samples,
            row.least_time,
            row.greatest_time,
            row.checksum.hex(),
            row.data_expires,
        )


@dataclass(frozen=True, slots=True)
class PinnedIndex:
    """A group row that references an index bucket."""

    shard: int
    row: GroupRow


@dataclass(frozen=True, slots=True)
class Pins:
    """The pinned state of a dataset: rows with samples, oldest bucket first within a shard; and index buckets,
    superseded ones last, otherwise newest first.
    """

    dataset: str
    groups: int
    rows: tuple[PinnedRow, ...]
    indexes: tuple[PinnedIndex, ...]


def pin_rows(dataset: str, groups: int, manifests: Mapping[int, ManifestRows], times: TimeRange, now: int) -> Pins:
    """Pin the rows that may contain samples of a time range, from the manifests of all shards.

    Only buckets up to the newest stored index bucket of their shard are included, because no stored index may have the
    series of later ones. Raises `PinnedRowExpired` if samples of the range have expired by `now`.
    """
    rows: list[PinnedRow] = []
    indexes: list[PinnedIndex] = []
    for shard, manifest in sorted(manifests.items()):
        designated = designated_group(ShardId(dataset, shard), groups)
        named = index_rows(manifest, designated, now + EXPIRY_SKEW_MS)
        # Including expired index buckets, so that rows up to them are reported as expired instead of being skipped.
        stored = (row.bucket for row in manifest.groups if row.group == designated and row.index and not row.superseded)
        newest = max(stored, default=None)
        if newest is None:
            continue
        # Superseded ones last: their keys only count if no other index bucket has them.
        indexes += [PinnedIndex(shard, row) for row in sorted(named, key=lambda row: (row.superseded, -row.bucket))]
        counting = (PinnedRow.of(shard, row) for row in manifest.groups if not row.superseded and row.bucket <= newest)
        found = [row for row in counting if row is not None and row.overlaps(times)]
        rows += sorted(found, key=lambda row: (row.bucket, row.group))
    require_unexpired(rows, now)
    return Pins(dataset, groups, tuple(rows), tuple(indexes))


def require_unexpired(rows: Iterable[PinnedRow], now: int) -> None:
    """Raises `PinnedRowExpired` if the data of a row may have expired by `now`, by the clock that expires it. Clocks of
    servers may differ by a minute.
    """
    for one in rows:
        if one.data_expires <= now + EXPIRY_SKEW_MS:
            raise PinnedRowExpired(
                f"the samples of {one.name} have expired, or expire within a minute",
                remedy="Use a later start time",
            )


def expired_rows(ids: Iterable[RowId], manifests: Mapping[int, ManifestRows], now: int) -> Sequence[RowId]:
    """The ids whose data has expired by `now`: the manifests have no unexpired row for their shard, bucket and group. A
    row that was written again since then has not expired.
    """
    unexpired = {
        (shard, row.bucket, row.group)
        for shard, manifest in manifests.items()
        for row in manifest.groups
        if row.data_expires > now + EXPIRY_SKEW_MS
    }
    return [one for one in ids if one.key not in unexpired]
