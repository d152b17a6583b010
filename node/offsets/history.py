"""The history of a shard by bucket: its cuts, and what is stored."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from strandline.node.offsets.deployment import Deployment
from strandline.node.offsets.texts import number
from strandline.node.output import Block, Table
from strandline.recovery.periods import utc_text
from strandline.store.rows import CutRow, GroupRow, ManifestRows, ShardId


@dataclass(frozen=True, slots=True)
class BucketHistory:
    """One bucket: its offsets `[start, end)`, its stored `samples`, and the owners that wrote them.

    `records` counts offsets, which is an upper bound of the records. `stored_groups` counts groups with a valid row,
    `superseded_groups` groups whose row a rewind has invalidated.
    """

    bucket: int
    time: str
    start: int
    end: int
    records: int
    samples: int
    late_samples: int
    stored_groups: int
    superseded_groups: int
    written_by: tuple[str, ...]
    written_at: int | None
    lost_to: int | None
    reset: bool


@dataclass(frozen=True, slots=True)
class HistoryReport:
    """A shard's buckets, newest first. `more`: there are older ones."""

    shard: int
    groups: int
    more: bool
    buckets: tuple[BucketHistory, ...]

    def blocks(self) -> Iterator[Block]:
        """A table."""
        if not self.buckets:
            yield f"Shard {self.shard} was never read."
            return
        columns = ("bucket", "time", "from", "up to", "records", "samples", "groups", "written by", "remarks")
        yield Table(columns, tuple(self._row(one) for one in self.buckets))
        if self.more:
            yield "There are older buckets: raise --limit to show more."

    def _row(self, one: BucketHistory) -> tuple[str, ...]:
        groups = "-" if one.reset else f"{one.stored_groups}/{self.groups}"
        counts = (number(one.start), number(one.end), number(one.records), number(one.samples), groups)
        return (str(one.bucket), one.time, *counts, ", ".join(one.written_by) or "-", "; ".join(_remarks(one)) or "-")


def history(deployment: Deployment, number_of_shard: int, limit: int) -> HistoryReport:
    """The newest buckets of a shard. Raises `NoSuchShard`."""
    shard = deployment.shard(number_of_shard, deployment.topic.now())
    manifest = _newest(deployment, shard, limit)
    if manifest is None:
        return HistoryReport(shard.shard, deployment.groups, more=False, buckets=())
    rows: dict[int, list[GroupRow]] = {}
    for row in manifest.groups:
        rows.setdefault(row.bucket, []).append(row)
    cuts = sorted(manifest.cuts, key=lambda cut: -cut.bucket)
    interval = deployment.cutting.flush_interval
    buckets = tuple(_bucket(cut, rows.get(cut.bucket, ()), interval) for cut in cuts[:limit])
    return HistoryReport(shard.shard, deployment.groups, more=len(cuts) > limit, buckets=buckets)


def _newest(deployment: Deployment, shard: ShardId, limit: int) -> ManifestRows | None:
    """The rows of more than `limit` buckets, or all rows. If the shard is not behind, the newest rows suffice."""
    first = deployment.clock.now_ms() // deployment.cutting.flush_interval - limit - 2
    found = deployment.manifest(shard, first)
    if found is None or len(found.cuts) > limit:
        return found
    return deployment.manifest(shard)


def _bucket(cut: CutRow, rows: Sequence[GroupRow], interval: int) -> BucketHistory:
    stored = [row for row in rows if not row.superseded]
    return BucketHistory(
        bucket=cut.bucket,
        time=utc_text(cut.bucket * interval),
        start=cut.start,
        end=cut.end,
        records=cut.end - cut.start,
        samples=sum(row.samples for row in stored),
        late_samples=sum(late.samples for row in stored for late in row.late),
        stored_groups=len(stored),
        superseded_groups=len(rows) - len(stored),
        written_by=tuple(sorted({row.written_by for row in rows if row.written_by})),
        written_at=max((row.written_at for row in rows), default=None),
        lost_to=cut.lost_to,
        reset=cut.reset,
    )


def _remarks(one: BucketHistory) -> Iterator[str]:
    if one.reset:
        yield "reading began here"
    if one.superseded_groups:
        yield f"superseded groups: {one.superseded_groups}"
    if one.lost_to is not None:
        yield f"[{one.start}, {one.lost_to}) lost"
    if one.late_samples:
        yield f"late samples: {one.late_samples:,}"
