"""The report of `strandline offsets show`: owners, checkpoints, log ends, and the retention margin of each shard."""

from collections.abc import Iterator
from dataclasses import dataclass

from strandline.node.offsets.deployment import Deployment
from strandline.node.offsets.texts import number, ranges, span
from strandline.node.offsets.topic import TopicNow
from strandline.node.output import Block, Table
from strandline.recovery.checkpoints import Progress, designated_group, progress
from strandline.recovery.cutting import Cutting
from strandline.recovery.job_order import JobOrder
from strandline.recovery.log_ends import LogEnds
from strandline.recovery.periods import Period, utc_text
from strandline.recovery.readiness import AcceptedLoss, LossReason, newest_ready_hour
from strandline.store.rows import ManifestRows, ShardId


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """A shard's checkpoints: the lowest and highest of its groups, and that of the index. `stored_until` is the time up
    to which all of them are stored.
    """

    lowest: int
    highest: int
    index: int
    stored_until: int
    stored_until_text: str
    behind_ms: int


@dataclass(frozen=True, slots=True)
class ShardOffsets:
    """One shard. Fields from the manifest are None without one.

    `seen_ms_ago` is None once the owner has released the shard. `lag` counts offsets that are not stored; None
    if they are of another topic. `deleted_records` counts those that the log no longer has. `deleted_in_ms` is the
    minimum time until retention deletes the next; None if all are stored or the retention is unlimited.
    """

    shard: int
    owner: str | None
    epoch: int | None
    seen_ms_ago: int | None
    topic_id: str | None
    is_another_topic: bool
    checkpoints: Checkpoints | None
    log_start: int
    log_end: int
    lag: int | None
    deleted_records: int
    deleted_in_ms: int | None
    losses: tuple[AcceptedLoss, ...]


@dataclass(frozen=True, slots=True)
class OffsetsReport:
    """The shards of a dataset. `newest_ready_hour` is only set if all shards are included."""

    dataset: str
    topic_id: str
    partitions: int
    newest_ready_hour: str | None
    shards: tuple[ShardOffsets, ...]

    def blocks(self) -> Iterator[Block]:
        """Two tables, because one would be too wide, and a line per problem."""
        yield f"Dataset {self.dataset}, topic id {self.topic_id}, partitions: {self.partitions}"
        if len(self.shards) == self.partitions:
            yield f"Newest ready hour: {self.newest_ready_hour or 'none'}"
        yield ""
        yield Table(("shard", "epoch", "owner", "seen", "stored until", "behind"), tuple(map(_owner_row, self.shards)))
        yield ""
        columns = ("shard", "lowest", "highest", "index", "log start", "log end", "lag", "deleted in")
        yield Table(columns, tuple(map(_offsets_row, self.shards)))
        for one in self.shards:
            yield from _remarks(one)


def show(deployment: Deployment, only: int | None = None) -> OffsetsReport:
    """The report of all shards, or of one. Raises `NoSuchShard`."""
    topic = deployment.topic.now()
    if only is not None:
        shard = deployment.shard(only, topic)
        shown, newest = [(shard, deployment.manifest(shard))], None
    else:
        stored = deployment.stored(topic)
        shown = [(ShardId(deployment.name, number), manifest) for number, manifest in enumerate(stored.manifests)]
        hour = newest_ready_hour(stored)
        newest = str(Period(hour)) if hour is not None else None
    offsets = tuple(_shard_offsets(deployment, topic, shard, manifest) for shard, manifest in shown)
    return OffsetsReport(deployment.name, topic.topic_id, topic.partitions, newest, offsets)


def _shard_offsets(
    deployment: Deployment, topic: TopicNow, shard: ShardId, manifest: ManifestRows | None
) -> ShardOffsets:
    ends, now = deployment.topic.ends(shard.shard), deployment.clock.now_ms()
    done = progress(manifest, deployment.groups, shard) if manifest is not None else None
    state = manifest.state if manifest is not None else None
    is_another = state is not None and done is not None and state.topic_id != topic.topic_id
    comparable = done if not is_another else None
    return ShardOffsets(
        shard=shard.shard,
        owner=state.owner if state is not None else None,
        epoch=state.epoch if state is not None else None,
        seen_ms_ago=max(0, now - state.seen_at) if state is not None and state.seen_at is not None else None,
        topic_id=state.topic_id if state is not None else None,
        is_another_topic=is_another,
        checkpoints=_checkpoints(done, shard, deployment.cutting, now) if done is not None else None,
        log_start=ends.start,
        log_end=ends.last_stable,
        lag=max(0, ends.last_stable - comparable.resume_at) if comparable is not None else None,
        deleted_records=max(0, ends.start - comparable.resume_at) if comparable is not None else 0,
        deleted_in_ms=_deleted_in(comparable, ends, JobOrder(deployment.cutting, topic.retention_ms), now),
        losses=_losses(shard, manifest),
    )


def _checkpoints(done: Progress, shard: ShardId, cutting: Cutting, now: int) -> Checkpoints:
    until = (min(done.stored_up_to) + 1) * cutting.flush_interval
    index = done.checkpoints[designated_group(shard, len(done.checkpoints))]
    return Checkpoints(done.lowest, max(done.checkpoints), index, until, utc_text(until), behind_ms=max(0, now - until))


def _deleted_in(done: Progress | None, ends: LogEnds, job_order: JobOrder, now: int) -> int | None:
    if done is None or done.resume_at >= ends.last_stable:
        return None
    left = job_order.time_left(min(done.stored_up_to) + 1, now)
    return max(0, left) if left is not None else None


def _losses(shard: ShardId, manifest: ManifestRows | None) -> tuple[AcceptedLoss, ...]:
    cuts = sorted(manifest.cuts, key=lambda cut: cut.bucket) if manifest is not None else []
    return tuple(
        AcceptedLoss(shard.shard, cut.start, cut.lost_to, (cut.bucket,), LossReason.DELETED)
        for cut in cuts
        if cut.lost_to is not None
    )


def _owner_row(one: ShardOffsets) -> tuple[str, ...]:
    if one.epoch is None:
        return (str(one.shard), "-", "none yet", "-", "never read", "-")
    seen = f"{span(one.seen_ms_ago)} ago" if one.seen_ms_ago is not None else "released"
    points = one.checkpoints
    stored, behind = (points.stored_until_text, span(points.behind_ms)) if points is not None else ("never read", "-")
    return (str(one.shard), str(one.epoch), (one.owner or "")[:12], seen, stored, behind)


def _offsets_row(one: ShardOffsets) -> tuple[str, ...]:
    points = one.checkpoints
    stored = (points.lowest, points.highest, points.index) if points is not None else (None, None, None)
    left = span(one.deleted_in_ms) if one.deleted_in_ms is not None else "-"
    return (str(one.shard), *(number(value) for value in (*stored, one.log_start, one.log_end, one.lag)), left)


def _remarks(one: ShardOffsets) -> Iterator[str]:
    if one.is_another_topic:
        yield f"Shard {one.shard} was read from another topic, {one.topic_id}: its offsets don't refer to this log."
    if one.deleted_records:
        yield f"Shard {one.shard}: offsets deleted from the log before they were stored: {one.deleted_records:,}"
    for loss in one.losses:
        yield (
            f"Shard {one.shard}: accepted loss of offsets [{loss.first}, {loss.behind}) in bucket"
            f" {ranges(loss.buckets)}."
        )
