"""The steps of a shard's start before it reads: the manifest, the offsets, and the index as of its checkpoint.

An error is raised if an operator has to decide. Everything else that must be in the manifest before the first record is
read is committed here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from strandline.errors import Fatal, Retryable
from strandline.index.bucket_codec import StoredBucket
from strandline.index.bucket_load import load_index
from strandline.index.shard_index import ShardIndex
from strandline.node.shard.index_damage import IndexRepair
from strandline.node.shard.log import LogEnds, LogUnreachable, OffsetGone, PartitionLog
from strandline.node.shard.log_identity import find_refilled
from strandline.node.shard.manifest_view import ManifestView
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.status import Status
from strandline.recovery.checkpoints import Progress, designated_group, index_rows, without_expired_buckets
from strandline.recovery.cutting import NO_TIME, Cutting
from strandline.recovery.offset_policy import (
    Accepted,
    Decision,
    LogState,
    RecordLoss,
    Reset,
    Resume,
    StartAt,
    StartFresh,
    decide,
)
from strandline.recovery.planning import covered_up_to
from strandline.recovery.replay.result_codec import read_result
from strandline.store.protocol import Store
from strandline.store.rows import CutRow, GroupRow, IndexBucketOf, ManifestWrite, Ownership

_LOG = structlog.get_logger(__name__)
_HEARTBEAT_S = 10.0
_READ_TIMEOUT_S, _READ_ATTEMPTS = 5.0, 12
# The newest records, of which one is enough: some of the last offsets may be those of transactions' markers.
_NEWEST_RECORDS, _NEWEST_TIMEOUT_S = 20, 1.0
_MAX_CONSECUTIVE_EXPIRED = 3


class StartStopped(Retryable):
    """The process was stopped before the shard had started."""


class ManifestMissing(Fatal):
    """A shard that was just taken has no manifest."""


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    """Where reading begins: the bucket, the offset, and the committed cuts from there on, oldest first.

    `missing` are the groups without a row in each of those buckets. The shard becomes active only once everything up to
    bucket `required`, the last one that a previous owner had cut, is stored. The records below `lost_to` are no longer
    in the log, and an operator has accepted the loss.
    """

    bucket: int
    bucket_start: int
    position: int
    known_cuts: Sequence[CutRow]
    missing: Mapping[int, frozenset[int]]
    required: int
    lost_to: int | None = None

    def missing_groups(self, bucket: int, groups: int) -> frozenset[int]:
        """The groups of a bucket that have no row yet."""
        return self.missing.get(bucket, frozenset(range(groups)))

    def with_loss(self, cut: CutRow) -> CutRow:
        """A new cut, with the part of the accepted loss that is in its bucket."""
        lost_to = self.lost_to
        return cut if lost_to is None or lost_to <= cut.start else replace(cut, lost_to=min(lost_to, cut.end))

    def with_cuts(self, done: Progress) -> "ReadingPlan":
        """The same plan with all cuts that are committed by now."""
        return replace(_plan(done, self.lost_to), required=self.required)

    def after_last_cut(self, done: Progress) -> "ReadingPlan":
        """A plan that begins after the newest cut: workers read what is before it."""
        last = done.cuts[-1]
        position = max(last.end, self.lost_to or 0)
        return ReadingPlan(last.bucket + 1, last.end, position, (), {}, last.bucket, self.lost_to)


def observe_brokers_clock(parts: ShardParts) -> None:
    """Read the newest records for their times, so that the present does not depend on the clocks of the node and the
    store alone: if one of them is behind, rows that have expired would count as missing.
    """
    ends = parts.log.ends()
    first = max(ends.start, ends.last_stable - _NEWEST_RECORDS)
    if first >= ends.last_stable:
        return
    parts.log.seek(first)
    try:
        records = parts.log.poll(_NEWEST_RECORDS, _NEWEST_TIMEOUT_S)
    except OffsetGone:
        return  # Kafka has just deleted them.
    if len(records):
        parts.present.observe_records(int(records.times.max()))


def read_manifest(store: Store, ownership: Ownership, groups: int, present: int) -> ManifestView:
    """Read the manifest of a shard that we own."""
    rows = store.manifest(ownership.shard)
    if rows is None:
        raise ManifestMissing(f"the manifest of {ownership.shard} is gone, though the shard was just taken")
    return ManifestView(ownership.shard, groups, without_expired_buckets(rows, present))


def settle_offsets(
    parts: ShardParts, ownership: Ownership, view: ManifestView, *, partitions: int, accepted: Accepted
) -> ReadingPlan:
    """Decide where reading begins, and commit the necessary rows. `partitions` is the dataset's number of partitions
    when it was created.
    """
    options, log = parts.options, parts.log
    ends, topic_id, done = log.ends(), log.topic_id(), view.progress()
    refilled_at = find_refilled(log, done.cuts, ends) if done is not None and view.topic_id == topic_id else None
    decision = decide(
        f"partition {options.shard}",
        _checkpoint(parts, done, ends) if done is not None else None,
        view.topic_id,
        LogState(topic_id, ends.start, ends.last_stable, _look_back(parts), refilled_at),
        in_dataset=options.shard.shard < partitions,
        first_start=options.first_start,
        accepted=accepted,
        furthest=done.cuts[-1].end if done is not None else 0,
        was_read=view.next_part_id > 0,
    )
    write = _write_of(decision, parts, view, ends, topic_id)
    if write is not None:
        parts.store.commit(ownership, write)
        view.committed(write)
    lost_to = None
    if isinstance(decision, RecordLoss):
        lost_to = decision.end
        _LOG.warning("an accepted loss is recorded", shard=str(options.shard), first=decision.first, end=decision.end)
    done = view.progress()
    if done is None:
        raise ManifestMissing(f"the manifest of {options.shard} has no cut row")
    return _plan(done, lost_to)


@dataclass(frozen=True, slots=True)
class AcquireProgress:
    """Reports what a start waits for before it owns the shard."""

    parts: ShardParts
    status: Status
    stopping: Callable[[], bool]

    def report(self, reason: str) -> None:
        """Set the reason for waiting. Raises `StartStopped` if the start was stopped."""
        self.status.reason = reason
        self.status.turns += 1
        if self.stopping():
            raise StartStopped(f"the start of {self.parts.options.shard} was stopped")


@dataclass(slots=True)
class LoadProgress:
    """Reports how much of an index is loaded, and writes heartbeats meanwhile."""

    parts: ShardParts
    ownership: Ownership
    status: Status
    stopping: Callable[[], bool]
    heartbeats: int = 0
    _heartbeat_at: float = 0.0

    def __post_init__(self) -> None:
        self._heartbeat_at = self.parts.clock.monotonic()

    def report(self, fraction: float) -> None:
        """Set the loaded fraction. Raises `StartStopped` if the start was stopped."""
        self.status.fraction = fraction
        self.keep_alive()

    def keep_alive(self) -> None:
        """Count an iteration, and write a heartbeat if it is due. Raises `StartStopped` if the start was stopped."""
        self.status.turns += 1
        if self.stopping():
            raise StartStopped(f"the start of {self.parts.options.shard} was stopped")
        if self.parts.clock.monotonic() - self._heartbeat_at >= _HEARTBEAT_S:
            self._heartbeat_at = self.parts.clock.monotonic()
            self.heartbeats += 1
            try:
                self.parts.store.touch(self.ownership, self.parts.clock.now_ms(), self.heartbeats)
            except Retryable as error:
                _LOG.warning("heartbeat write failed", error=str(error))


def load_shard_index(parts: ShardParts, view: ManifestView, loading: LoadProgress, repair: IndexRepair) -> ShardIndex:
    """Load the index as of its checkpoint, from the local copy and newer buckets, or from all buckets. Raises the
    errors of `repair` for a damaged bucket.
    """
    options = parts.options
    designated = designated_group(options.shard, options.groups)
    # All rows regardless of their expiry: an expired bucket is detected by its absence.
    rows = index_rows(view.rows(), designated, now=0)
    done = view.progress()
    if done is None:
        raise ManifestMissing(f"the manifest of {options.shard} has no cut row")
    opened = parts.index_storage.open(view.topic_id, rows)
    repair.copy = opened.copy
    copied = opened.copy.bucket if opened.copy is not None else None
    wanted = [row for row in rows if not row.superseded and (copied is None or row.bucket > copied)]
    superseded = [row for row in rows if row.superseded]
    index = load_index(
        options.policy,
        opened.documents,
        _stored_buckets(parts, wanted, loading, repair),
        {row.bucket: row.data_expires for row in rows},
        open_bucket=done.stored_up_to[designated] + 1,
        next_part_id=view.next_part_id,
        series_limit=options.series_limit,
        copy=opened.copy,
        copy_table=opened.copy_table,
        superseded=_stored_buckets(parts, superseded, loading, repair),
    )
    index.supersede(row.bucket for row in superseded)
    return index


def _stored_buckets(
    parts: ShardParts, rows: Sequence[GroupRow], loading: LoadProgress, repair: IndexRepair
) -> Iterator[StoredBucket]:
    """The buckets that the rows reference, newest first.

    Rows outlive the buckets that they reference. A bucket counts as expired if it is missing and the present has passed
    its expiry. After `_MAX_CONSECUTIVE_EXPIRED` of them, older buckets are not read.
    """
    expired = 0
    for done, row in enumerate(rows):
        if row.index is not None and expired < _MAX_CONSECUTIVE_EXPIRED:
            where = IndexBucketOf(parts.options.shard, row.bucket, row.index.attempt)
            data = tuple(parts.store.index_bucket(where))
            if not data and row.index.rows and parts.present.now_ms() >= row.data_expires:
                expired += 1
            else:
                expired = 0
                yield repair.read(row, row.index, data)
        loading.report((done + 1) / len(rows))


def _checkpoint(parts: ShardParts, done: Progress, ends: LogEnds) -> int:
    """Where reading continues: at the checkpoint, or after what workers have read if the log no longer has that."""
    if done.resume_at >= ends.start or parts.replays is None:
        return done.resume_at
    store, shard = parts.store, parts.options.shard
    return covered_up_to(done, shard, store.jobs(shard), lambda job: read_result(store, job) is not None)


def _look_back(parts: ShardParts) -> int | None:
    first_start = parts.options.first_start
    if first_start.at is not StartAt.LOOK_BACK:
        return None
    return parts.log.offset_at(parts.present.now_ms() - first_start.look_back)


def _write_of(
    decision: Decision, parts: ShardParts, view: ManifestView, ends: LogEnds, topic_id: str
) -> ManifestWrite | None:
    """The rows that must be committed before the first record is read."""
    done = view.progress()
    first = _time_of_first_record(parts, ends, decision.offset) if isinstance(decision, StartFresh | Reset) else None
    present = parts.present.now_ms()
    match decision:
        case Resume():
            return None
        case StartFresh(offset):
            cut = _first_cut(parts, view, offset, present, first)
            return ManifestWrite(cuts=(cut,), topic_id=topic_id, present=present)
        case Reset(offset):
            cut = _first_cut(parts, view, offset, present, first)
            # After all buckets that have rows, so that none of them is changed.
            least = (done.cuts[-1].bucket + 1) if done is not None else cut.bucket
            cut = replace(cut, bucket=max(cut.bucket, least))
            return ManifestWrite(cuts=(cut,), topic_id=topic_id, present=present)
        case RecordLoss(first, behind):
            cuts = done.cuts if done is not None else ()
            lost = [cut for cut in cuts if cut.end > first and cut.start < behind and not cut.reset]
            rows = [replace(cut, lost_to=min(behind, cut.end)) for cut in lost]
            if cuts and behind > cuts[-1].end:
                # The open bucket, closed at the end of the loss, so that the loss is recorded at once and not with the
                # next cut. The rest of the bucket's time falls into the next bucket, like late samples.
                expires = view.row_expiry(present + parts.options.row_lifetime)
                rows.append(CutRow(cuts[-1].bucket + 1, cuts[-1].end, behind, expires, lost_to=behind))
            return ManifestWrite(cuts=tuple(rows), present=present)


def _time_of_first_record(parts: ShardParts, ends: LogEnds, offset: int) -> int | None:
    """The time of the first record from the offset on; None if there is none. Also passes it to the present: without
    the brokers' clock, a clock of the node or store that is years behind would make the first bucket years old.
    """
    time = _time_of_first(parts.log, offset, ends.last_stable) if offset < ends.last_stable else None
    if time is not None:
        parts.present.observe_records(time)
    return time


def _first_cut(parts: ShardParts, view: ManifestView, offset: int, present: int, first: int | None) -> CutRow:
    """The cut row of the bucket before that of the record at the offset; without a record, before the current one."""
    options = parts.options
    expires = view.row_expiry(present + options.row_lifetime)
    # The smaller one: the brokers' clock may have been ahead, and the buckets up to its time would be skipped.
    time = present if first is None else min(present, first)
    bucket = Cutting(options.policy.flush_interval, options.grace).bucket_of(time) - 1
    return CutRow(bucket, offset, offset, expires, reset=True)


def _time_of_first(log: PartitionLog, offset: int, behind: int) -> int | None:
    """The time of the first record in a range; None if it has no time, or there is no visible record."""
    log.seek(offset)
    for _ in range(_READ_ATTEMPTS):
        records = log.poll(1, _READ_TIMEOUT_S)
        if len(records):
            return int(records.times[0]) if records.times[0] != NO_TIME else None
        if records.position >= behind:
            return None
    raise LogUnreachable(
        f"offset {offset} is in the log but was not read within {_READ_ATTEMPTS * _READ_TIMEOUT_S:.0f} s",
        remedy="Check that the brokers are healthy",
    )


def _plan(done: Progress, lost_to: int | None) -> ReadingPlan:
    first = min(done.stored_up_to) + 1
    known = [cut for cut in done.cuts if cut.bucket >= first]
    start = known[0].start if known else done.cuts[-1].end
    # Not after every loss: workers may have read what is before it, and then only their results have that.
    position = max(start, done.resume_at)
    missing = {cut.bucket: done.missing[cut.bucket] for cut in known}
    return ReadingPlan(first, start, position, known, missing, done.cuts[-1].bucket, lost_to)
