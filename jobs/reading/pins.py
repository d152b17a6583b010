"""Which rows of the manifests a bulk read is made from. Pure functions over manifests.

A row is pinned by its attempt and checksum. Segments are written once under an attempt, so a pinned row means the same
samples for as long as its data is stored.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from strandline.errors import Fatal
from strandline.recovery.checkpoints import EXPIRY_SKEW_MS, designated_group, index_rows
from strandline.store.rows import GroupRow, ManifestRows, ShardId
from strandline.time_range import TimeRange


class PinnedRowExpired(Fatal):
    """Data that a bulk read needs has expired, or will within a minute."""


@dataclass(frozen=True, slots=True, order=True)
class RowId:
    """What identifies a stored row: equal ids have equal samples."""

    shard: int
    bucket: int
    group: int
    checksum: str

    @property
    def place(self) -> tuple[int, int, int]:
        """Shard, bucket and group: where it stands in the manifests."""
        return self.shard, self.bucket, self.group


@dataclass(frozen=True, slots=True)
class PinnedRow:
    """A group's row of a shard's manifest, as far as reading it takes. `checksum` is over its segments."""

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
        """Its identity."""
        return RowId(self.shard, self.bucket, self.group, self.checksum)

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"bucket {self.bucket}, group {self.group} of shard {self.shard}"

    def overlaps(self, times: TimeRange) -> bool:
        """Whether it may hold samples of a range of times."""
        return self.least_time <= times.last and self.greatest_time >= times.first

    @classmethod
    def of(cls, shard: int, row: GroupRow) -> "PinnedRow | None":
        """A row of a manifest; None for one without samples."""
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
    """A row of a shard's manifest that names an index bucket."""

    shard: int
    row: GroupRow


@dataclass(frozen=True, slots=True)
class Pins:
    """What is stored of a dataset at one moment: rows with samples, oldest bucket first within a shard; and the index
    buckets, those that count first, newest bucket first.
    """

    dataset: str
    groups: int
    rows: tuple[PinnedRow, ...]
    indexes: tuple[PinnedIndex, ...]


def pin(dataset: str, groups: int, manifests: Mapping[int, ManifestRows], times: TimeRange, now: int) -> Pins:
    """Pin the rows that may hold samples of a range of times, by the manifests of all shards.

    Of each shard only buckets count whose index is stored, or that of a later one: series of any other bucket may not
    be named by any index that is stored. Raises `PinnedRowExpired` if samples of the range have expired by `now`.
    """
    rows: list[PinnedRow] = []
    indexes: list[PinnedIndex] = []
    for shard, manifest in sorted(manifests.items()):
        designated = designated_group(ShardId(dataset, shard), groups)
        named = index_rows(manifest, designated, now + EXPIRY_SKEW_MS)
        # Index buckets that have expired, too: rows up to them must not be left out silently.
        stored = (row.bucket for row in manifest.groups if row.group == designated and row.index and not row.superseded)
        newest = max(stored, default=None)
        if newest is None:
            continue
        # Superseded ones last: their keys count only where no other index bucket names them.
        indexes += [PinnedIndex(shard, row) for row in sorted(named, key=lambda row: (row.superseded, -row.bucket))]
        counting = (PinnedRow.of(shard, row) for row in manifest.groups if not row.superseded and row.bucket <= newest)
        found = [row for row in counting if row is not None and row.overlaps(times)]
        rows += sorted(found, key=lambda row: (row.bucket, row.group))
    require_unexpired(rows, now)
    return Pins(dataset, groups, tuple(rows), tuple(indexes))


def require_unexpired(rows: Iterable[PinnedRow], now: int) -> None:
    """Raises `PinnedRowExpired` if the data of a row may be gone by `now`, by the clock that expires it. Clocks of
    servers may differ by a minute.
    """
    for one in rows:
        if one.data_expires <= now + EXPIRY_SKEW_MS:
            raise PinnedRowExpired(
                f"the samples of {one.name} have expired, or expire within a minute",
                remedy="Begin at a later time: what has expired can't be read",
            )


def expired_rows(ids: Iterable[RowId], manifests: Mapping[int, ManifestRows], now: int) -> Sequence[RowId]:
    """Those of some rows whose data is gone by `now`: their manifests have no row in their place whose data is there.
    A row that was written again since then is not gone.
    """
    there = {
        (shard, row.bucket, row.group)
        for shard, manifest in manifests.items()
        for row in manifest.groups
        if row.data_expires > now + EXPIRY_SKEW_MS
    }
    return [one for one in ids if one.place not in there]
