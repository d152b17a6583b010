"""When an hour or a day is complete, computed from the manifests of all partitions: pure functions over their rows.

Hour H is ready when every group of every partition is stored up to the bucket that contains H's last millisecond. If a
loss closed that bucket early, the next bucket has to be stored too. Samples of H in later buckets are counted in those
buckets' rows and raise H's revision. What can't be determined is never reported as ready: manifest rows expire after
`dataset.history`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from strandline.recovery.checkpoints import Progress, progress
from strandline.recovery.cutting import Cutting
from strandline.recovery.periods import HOUR, Period
from strandline.store.late_samples import first_hour_on_time
from strandline.store.rows import CutRow, GroupRow, LateSamples, ManifestRows, ShardId

OLDER_THAN_HISTORY = "older than the history"
NOT_READ_YET = "no partition was read yet"
NOT_OVER = "it is not over yet"


class Verdict(StrEnum):
    """The answer for an hour or a day."""

    READY = "ready"
    NOT_READY = "not ready"
    UNKNOWN = "unknown"


class LossReason(StrEnum):
    """Why samples of an hour are missing permanently: Kafka had deleted them, or the topic was recreated before all of
    it was stored. An operator has accepted either.
    """

    DELETED = "deleted"
    TOPIC_RECREATED = "topic made again"


@dataclass(frozen=True, slots=True)
class StoredDataset:
    """What is stored of a dataset. `manifests` has the manifest of each partition of the topic, by number; None for a
    partition that no shard has taken yet.

    Manifests may start at any bucket before the one in question. Rows before `known_since` may have expired. `present`
    is the time that two clocks have reached: an hour is not over before it.
    """

    dataset: str
    cutting: Cutting
    groups: int
    manifests: Sequence[ManifestRows | None]
    known_since: int
    present: int


@dataclass(frozen=True, slots=True)
class BehindPartition:
    """A partition because of which an hour or a day is not ready.

    All of its groups are stored up to `reached_bucket`, which is None if it was never read. `missing_groups` are those
    that are not stored up to `needed_bucket`. `behind_ms` is the time between what it has reached and the end of the
    hour or day, or of the later bucket that completes it.
    """

    shard: int
    needed_bucket: int
    reached_bucket: int | None
    missing_groups: tuple[int, ...]
    behind_ms: int | None


@dataclass(frozen=True, slots=True)
class AcceptedLoss:
    """Offsets `[first, behind)` of a partition that were not and will never be read, in these buckets.

    Groups that were stored before the loss have lost nothing. `behind` is None if the end of the old topic is unknown.
    """

    shard: int
    first: int
    behind: int | None
    buckets: tuple[int, ...]
    reason: LossReason


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether an hour or a day is complete, and what arrived later.

    `revision` is the number of rows, one per bucket and group, of later buckets with samples of it. `late_samples` is
    the number of those samples. Neither decreases while the data exists. A row that counts a range of hours counts for
    each hour in it, with all of its samples. `rewound_samples` are those that can't be read now, because a rewind will
    read them again. `started_later` are the partitions that do not count because they were not read yet.
    """

    period: str
    verdict: Verdict
    reason: str
    hours: int
    ready_hours: int
    first_not_ready: str | None
    revision: int
    late_samples: int
    rewound_samples: int
    behind: tuple[BehindPartition, ...]
    losses: tuple[AcceptedLoss, ...]
    started_later: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """How far a partition is stored with all of its groups: the newest bucket, the time up to which it is stored, and
    how long ago that was. All are None if it was never read.
    """

    shard: int
    reached_bucket: int | None
    stored_until: int | None
    behind_ms: int | None


def bucket_of_hour(hour: int, flush_interval: int) -> int:
    """The bucket that completes an hour: the one that contains its last millisecond."""
    return ((hour + 1) * HOUR - 1) // flush_interval


def readiness(stored: StoredDataset, period: Period) -> Readiness:
    """Whether an hour or a day is complete. A day is complete if all its hours are. Raises `ManifestInconsistent`."""
    partitions = _partitions(stored)
    hours = [(hour, _judge_hour(stored, partitions, hour)) for hour in period.each_hour()]
    verdicts = [judged.verdict for _, judged in hours]
    verdict = next((one for one in (Verdict.NOT_READY, Verdict.UNKNOWN) if one in verdicts), Verdict.READY)
    # A partition that is behind for one hour is behind for all later ones, so the last hour has all of them.
    *_, (_, last) = hours
    rows = [
        (row, late, hours_of_period)
        for manifest in stored.manifests
        if manifest is not None
        for row in manifest.groups
        for late in row.late
        if (hours_of_period := _late_hours(row, late, period, stored.cutting.flush_interval))
    ]
    return Readiness(
        period=str(period),
        verdict=verdict,
        reason=next((judged.reason for _, judged in hours if judged.verdict is verdict), ""),
        hours=period.hours,
        ready_hours=verdicts.count(Verdict.READY),
        first_not_ready=next((str(hour) for hour, judged in hours if judged.verdict is not Verdict.READY), None),
        # Superseded rows count too: each will be written again, so a revision never decreases.
        revision=sum(of_period for _, _, of_period in rows),
        late_samples=sum(late.samples for _, late, _ in rows),
        rewound_samples=sum(late.samples for row, late, _ in rows if row.superseded),
        behind=last.behind,
        losses=_losses(stored, partitions, period),
        started_later=last.started_later,
    )


def _late_hours(row: GroupRow, late: LateSamples, period: Period, flush_interval: int) -> int:
    """How many hours of a period a count of late samples is about. A range of hours may extend past those that can have
    been late.
    """
    behind = late.hour + late.hours
    if late.hours > 1:
        behind = min(behind, first_hour_on_time(row.bucket, flush_interval))
    return max(0, min(behind, period.first_hour + period.hours) - max(late.hour, period.first_hour))


def newest_ready_hour(stored: StoredDataset) -> int | None:
    """The newest ready hour, counted since the epoch; None if there is none."""
    partitions = _partitions(stored)
    complete = [one.complete for one in partitions]
    lowest = min((bucket for bucket in complete if bucket is not None), default=None)
    if lowest is None or None in complete:
        return None
    hour = min((lowest + 1) * stored.cutting.flush_interval, stored.present) // HOUR - 1
    return hour if _judge_hour(stored, partitions, Period(hour)).verdict is Verdict.READY else None


def partition_progress(stored: StoredDataset, now: int) -> tuple[PartitionProgress, ...]:
    """How far each partition is stored, and how far that is behind `now`."""
    found = []
    for one in _partitions(stored):
        until = (one.reached + 1) * stored.cutting.flush_interval if one.reached is not None else None
        found.append(
            PartitionProgress(one.shard, one.reached, until, max(0, now - until) if until is not None else None)
        )
    return tuple(found)


class _BucketState(StrEnum):
    """The state of a bucket in one partition."""

    STORED = "stored"
    BEHIND = "behind"
    STARTED_LATER = "started later"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class _TopicLife:
    """What was read of one topic: contiguous cut rows, oldest first. The first is a reset, unless that has expired."""

    cuts: Sequence[CutRow]

    def holds(self, bucket: int) -> bool:
        """Whether the bucket, or its successor if it was never cut, belongs to this topic and not to an earlier one."""
        first = self.cuts[0]
        return bucket > first.bucket if first.reset else bucket >= first.bucket


@dataclass(frozen=True, slots=True)
class _Partition:
    """One partition's manifest, prepared for lookups. `lives` has one element per topic, oldest first; only the newest
    one continues.

    `closed_early` are the buckets that may have been closed before their time: the records of the rest of their time
    are in the next bucket.
    """

    shard: int
    manifest: ManifestRows | None
    lives: Sequence[_TopicLife]
    done: Progress | None
    closed_early: frozenset[int]
    stored: frozenset[tuple[int, int]] = field(repr=False)

    @property
    def reached(self) -> int | None:
        """The newest bucket up to which every group is stored."""
        return min(self.done.stored_up_to) if self.done is not None else None

    @property
    def complete(self) -> int | None:
        """The newest bucket of whose time everything is stored."""
        bucket = self.reached
        while bucket is not None and bucket in self.closed_early:
            bucket -= 1
        return bucket

    def completed_by(self, bucket: int) -> int:
        """The bucket up to which everything has to be stored for this bucket's time to be complete."""
        while bucket in self.closed_early:
            bucket += 1
        return bucket

    def life_of(self, bucket: int) -> _TopicLife | None:
        return next((life for life in reversed(self.lives) if life.holds(bucket)), None)

    def missing(self, bucket: int) -> tuple[int, ...]:
        """The groups that are not stored up to a bucket of the newest topic."""
        if self.done is None:
            return ()
        return tuple(group for group, up_to in enumerate(self.done.stored_up_to) if up_to < bucket)

    def state(self, bucket: int, *, may_have_expired: bool) -> _BucketState:
        if self.done is None:
            return _BucketState.BEHIND
        life = self.life_of(bucket)
        if life is None:
            began = self.lives[0].cuts[0].reset and not may_have_expired
            return _BucketState.STARTED_LATER if began else _BucketState.UNKNOWN
        # The newest topic starts after all older ones. What was not stored of those never will be: that is a loss, and
        # not worth waiting for.
        return _BucketState.BEHIND if self.missing(self.completed_by(bucket)) else _BucketState.STORED


@dataclass(frozen=True, slots=True)
class _JudgedHour:
    verdict: Verdict
    reason: str
    behind: tuple[BehindPartition, ...]
    started_later: tuple[int, ...]


def _partitions(stored: StoredDataset) -> Sequence[_Partition]:
    return [
        _partition(ShardId(stored.dataset, shard), manifest, stored.groups)
        for shard, manifest in enumerate(stored.manifests)
    ]


def _partition(shard: ShardId, manifest: ManifestRows | None, groups: int) -> _Partition:
    if manifest is None:
        return _Partition(shard.shard, None, (), None, frozenset(), frozenset())
    lives: list[list[CutRow]] = []
    for cut in sorted(manifest.cuts, key=lambda one: one.bucket):
        if cut.reset or not lives:
            lives.append([])
        lives[-1].append(cut)
    return _Partition(
        shard.shard,
        manifest,
        [_TopicLife(cuts) for cuts in lives],
        progress(manifest, groups, shard),
        _closed_early(lives),
        frozenset((row.bucket, row.group) for row in manifest.groups if not row.superseded),
    )


def _closed_early(lives: Sequence[Sequence[CutRow]]) -> frozenset[int]:
    """The buckets that a loss has closed at its start or end, and those in which a topic was recreated. For a bucket
    that was lost completely, the row does not tell whether its time was over, so it counts too: at worst its hour is
    ready one bucket later.
    """
    closed = (cut for cuts in lives for cut in cuts if cut.closed_early or cut.lost_to == cut.end)
    lost = (cut.bucket for cut in closed if not cut.reset)
    made_again = (cuts[0].bucket for cuts in lives[1:])
    return frozenset((*lost, *made_again))


def _judge_hour(stored: StoredDataset, partitions: Sequence[_Partition], hour: Period) -> _JudgedHour:
    interval = stored.cutting.flush_interval
    bucket = bucket_of_hour(hour.first_hour, interval)
    may_have_expired = hour.end <= stored.known_since
    found = [(one, one.state(bucket, may_have_expired=may_have_expired)) for one in partitions]
    behind = tuple(
        BehindPartition(
            one.shard,
            needed,
            one.reached,
            one.missing(needed) if one.done is not None else tuple(range(stored.groups)),
            hour.end + (needed - bucket - one.reached - 1) * interval if one.reached is not None else None,
        )
        for one, state in found
        if state is _BucketState.BEHIND
        for needed in (one.completed_by(bucket),)
    )
    states = {state for _, state in found}
    if behind:
        verdict, reason = Verdict.NOT_READY, ""
    elif hour.end > stored.present:
        verdict, reason = Verdict.NOT_READY, NOT_OVER
    elif _BucketState.UNKNOWN in states:
        verdict, reason = Verdict.UNKNOWN, OLDER_THAN_HISTORY
    elif _BucketState.STORED not in states:
        verdict, reason = Verdict.UNKNOWN, NOT_READ_YET
    else:
        verdict, reason = Verdict.READY, ""
    later = tuple(one.shard for one, state in found if state is _BucketState.STARTED_LATER)
    return _JudgedHour(verdict, reason, behind, later)


def _losses(stored: StoredDataset, partitions: Sequence[_Partition], period: Period) -> tuple[AcceptedLoss, ...]:
    """The accepted losses in the buckets that contain a period's records. The period's first records are in the bucket
    before, which stays open during its grace.
    """
    cutting = stored.cutting
    first, last = cutting.bucket_of(period.start), (period.end - 1) // cutting.flush_interval
    losses: list[AcceptedLoss] = []
    for one in partitions:
        losses += _deleted(one, first, last)
        losses += _left_behind(one, first, last, stored.groups)
    return tuple(losses)


def _deleted(one: _Partition, first: int, last: int) -> list[AcceptedLoss]:
    """Records that Kafka had deleted. Contiguous ranges in successive buckets are one loss."""
    losses: list[AcceptedLoss] = []
    for cut in (cut for life in one.lives for cut in life.cuts if first <= cut.bucket <= last):
        if cut.lost_to is None:
            continue
        if losses and losses[-1].behind == cut.start:
            before = losses.pop()
            start, buckets = before.first, (*before.buckets, cut.bucket)
        else:
            start, buckets = cut.start, (cut.bucket,)
        losses.append(AcceptedLoss(one.shard, start, cut.lost_to, buckets, LossReason.DELETED))
    return losses


def _left_behind(one: _Partition, first: int, last: int, groups: int) -> list[AcceptedLoss]:
    """What was not stored of a topic when another one replaced it: buckets that lack a group, and records that were
    never cut.
    """
    losses = []
    for life, following in zip(one.lives, one.lives[1:], strict=False):
        cuts = [cut for cut in life.cuts if not cut.reset]
        is_complete = [all((cut.bucket, group) in one.stored for group in range(groups)) for cut in cuts]
        end, next_bucket = life.cuts[-1].end, life.cuts[-1].bucket + 1
        if False in is_complete:
            first_incomplete = cuts[is_complete.index(False)]
            end, next_bucket = first_incomplete.start, first_incomplete.bucket
        buckets = tuple(range(max(first, next_bucket), min(last, following.cuts[0].bucket) + 1))
        if buckets:
            losses.append(AcceptedLoss(one.shard, end, None, buckets, LossReason.TOPIC_RECREATED))
    return losses
