"""Stores closed buckets step by step: cut rows, segments group by group, index buckets, and the rows that reference
them.

Guarantees: a cut row is committed before anything of its bucket is stored, a group's row after every segment that it
references, and a group's rows in the order of their buckets. A failed step is retried until it succeeds, and steps are
idempotent. One thread calls `step`, and only this thread writes the manifest.

The monotonic clock decides when a step is due. Stored times are wall-clock times.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import structlog

from strandline.digest import digest
from strandline.errors import Retryable, StrandlineError
from strandline.index.bucket_codec import EncodedBucket
from strandline.index.cut_snapshot import CutSnapshot
from strandline.index.time_bucket import FrozenBucket
from strandline.node.shard.closed_bucket import ClosedBucket, ClosedIndex, Replayed
from strandline.node.shard.flush_schedule import Backoff, FlushSchedule
from strandline.node.shard.manifest_view import ManifestView
from strandline.node.shard.ownership import attempt_prefix
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.stages import Stage, Stages
from strandline.node.shard.status import Counters
from strandline.recovery.checkpoints import designated_group
from strandline.store.batches import batches, row_bytes
from strandline.store.buffer.frozen_buffer import FrozenBuffer
from strandline.store.group_write import GroupWrite, StoredGroup, encode_group
from strandline.store.rows import CutRow, IndexBucketOf, IndexBucketRows, Lifetime, ManifestWrite, Ownership, SegmentsOf

HEARTBEAT_MS = 10_000
_CUTS_PER_COMMIT = 500
_ROWS_PER_COMMIT = 64
_LOG = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class StoredIndexBucket:
    """An index bucket that the manifest references, and when it expires."""

    bucket: FrozenBucket
    expires: int


@dataclass(frozen=True, slots=True)
class _StoredSegments:
    """A group's segments that are in the store but not referenced by a row yet. `bytes` is 0 if a worker wrote them."""

    attempt: str
    life: Lifetime
    group: StoredGroup
    bytes: int


class Flusher:
    """Writes to the store for one owner of a shard."""

    def __init__(
        self,
        parts: ShardParts,
        ownership: Ownership,
        view: ManifestView,
        counters: Counters,
        stages: Stages,
        *,
        encode_index: Callable[[FrozenBucket], EncodedBucket],
        heartbeats: int = 0,
    ) -> None:
        """`encode_index` encodes a frozen bucket as rows. `heartbeats` is the number of heartbeats already written."""
        options = parts.options
        self._store, self._ownership, self._options = parts.store, ownership, options
        self._view, self._counters, self._stages, self._clock = view, counters, stages, parts.clock
        self._encode_index, self._index_storage, self._present = encode_index, parts.index_storage, parts.present
        self._designated = designated_group(options.shard, options.groups)
        timing = options.flush
        self._backoff = Backoff(timing.retry_min, timing.retry_max)
        self._schedule = FlushSchedule(
            options.groups,
            int(options.policy.flush_interval * timing.spread),
            # Independent of the designated group: otherwise all shards would write their index buckets right after the
            # cut.
            digest(f"first group of {options.shard}".encode()) % options.groups,
            self._backoff,
        )
        self._lock = threading.Lock()
        self._flush_requested = threading.Event()
        self._added: deque[ClosedBucket] = deque()
        self._closed: dict[int, ClosedBucket] = {}
        self._snapshot: CutSnapshot | None = None
        self._uncommitted_cuts: deque[ClosedBucket] = deque()
        self._cut_failures = 0
        self._cut_retry_at = 0
        self._confirmed_ends: set[int] = set()
        self._written: dict[tuple[int, int], GroupWrite] = {}
        self._stored: deque[StoredIndexBucket] = deque()
        self._attempts = 0
        self._heartbeat_at, self._heartbeats = self._monotonic_ms(), heartbeats

    def add(self, closed: ClosedBucket) -> None:
        """Add a closed bucket, in the order of buckets. Any thread may call it."""
        with self._lock:
            self._added.append(closed)
            self._closed[closed.bucket] = closed

    def offer_copy(self, snapshot: CutSnapshot) -> None:
        """Set the snapshot of the index at the newest cut, which becomes the local copy once that bucket's index is
        stored.

        Only the newest snapshot is kept: one for each bucket would fill the memory while the store is unreachable. A
        start applies newer index buckets to an older copy.
        """
        with self._lock:
            self._snapshot = snapshot

    def confirm_ends(self, buckets: Iterable[int]) -> None:
        """Note in the buckets' cut rows that no record of their time follows their ends, once the cuts are committed.
        Any thread may call it.
        """
        with self._lock:
            self._confirmed_ends.update(buckets)

    @property
    def is_confirming(self) -> bool:
        """Whether a confirmed end is not in the manifest yet."""
        return bool(self._confirmed_ends)

    def flush_now(self) -> None:
        """Make everything due now, except failed groups that wait for a retry. Any thread may call it."""
        self._flush_requested.set()

    def closed_buckets(self) -> list[ClosedBucket]:
        """The closed buckets that are not stored completely, oldest first. Any thread may call it."""
        with self._lock:
            return [self._closed[bucket] for bucket in sorted(self._closed)]

    def take_stored(self) -> list[StoredIndexBucket]:
        """The index buckets that have been stored since the last call, for the thread that updates the index."""
        with self._lock:
            stored = list(self._stored)
            self._stored.clear()
            return stored

    def step(self) -> float:
        """Do one due step, and return the seconds until the next one. Raises `Fenced` and other fatal errors."""
        now = self._monotonic_ms()
        self._accept(now)
        if self._flush_requested.is_set():
            self._flush_requested.clear()
            self._schedule.make_due(now)
        if now - self._heartbeat_at >= HEARTBEAT_MS:
            self._write_heartbeat(now)
        if self._uncommitted_cuts and now >= self._cut_retry_at:
            self._commit_cuts(now)
            return 0.0
        if now >= self._cut_retry_at and (confirmed := self._confirmed_cuts()):
            self._commit_confirmed(confirmed, now)
            return 0.0
        # Nothing of a bucket is stored before its cut is committed.
        first_uncommitted = self._uncommitted_cuts[0].bucket if self._uncommitted_cuts else None
        upcoming = self._schedule.next_due(below=first_uncommitted)
        if upcoming is not None and upcoming[0] <= now:
            self._store_groups(self._closed[upcoming[1]], upcoming[2], now)
            return 0.0
        due = [self._heartbeat_at + HEARTBEAT_MS]
        due += [self._cut_retry_at] if self._uncommitted_cuts or self._confirmed_cuts() else []
        due += [upcoming[0]] if upcoming is not None else []
        return max(0.0, (min(due) - now) / 1000)

    def release(self) -> None:
        """Record in the manifest that the owner has left, so that the next one need not wait for a timeout."""
        self._store.touch(self._ownership, None, self._heartbeats)

    def _monotonic_ms(self) -> int:
        return int(self._clock.monotonic() * 1000)

    def _bucket_time(self, bucket: int, present: int) -> int:
        """The start of the lifetime of a bucket's data. A clock that is behind must not make it expire too early."""
        return max(present, (bucket + 1) * self._options.policy.flush_interval)

    def _row_expiry(self, bucket: int, present: int) -> int:
        return self._view.row_expiry(self._bucket_time(bucket, present) + self._options.row_lifetime)

    def _accept(self, now: int) -> None:
        with self._lock:
            added = list(self._added)
            self._added.clear()
        for closed in added:
            if not closed.cut_committed:
                self._uncommitted_cuts.append(closed)
            self._schedule.add(closed.bucket, closed.groups, now, urgent=closed.urgent)
            self._drop_if_stored(closed)

    def _write_heartbeat(self, now: int) -> None:
        self._heartbeat_at = now
        self._heartbeats += 1
        try:
            self._present.poll_store_clock()
            self._store.touch(self._ownership, self._clock.now_ms(), self._heartbeats)
        except Retryable as error:
            self._counters.store_retries += 1
            _LOG.warning("heartbeat write failed", shard=str(self._options.shard), error=str(error))

    def _commit_cuts(self, now: int) -> None:
        waiting = next(batches(self._uncommitted_cuts, lambda one: row_bytes(one.cut), max_rows=_CUTS_PER_COMMIT))
        # By the present of the commit, not of the cut: no row may expire before an older one.
        present = self._present.now_ms()
        expires = self._row_expiry(waiting[-1].bucket, present)
        cuts = tuple(replace(closed.cut, expires=expires) for closed in waiting)
        if self._commit_cut_rows(ManifestWrite(cuts=cuts, present=present), now):
            for _ in waiting:
                self._uncommitted_cuts.popleft()

    def _confirmed_cuts(self) -> list[CutRow]:
        """The committed cuts whose ends are confirmed and not noted yet."""
        with self._lock:
            buckets = sorted(self._confirmed_ends)
        return [cut for bucket in buckets if (cut := self._view.cut(bucket)) is not None]

    def _commit_confirmed(self, cuts: Sequence[CutRow], now: int) -> None:
        some = next(batches(cuts, row_bytes, max_rows=_CUTS_PER_COMMIT))
        rows = tuple(replace(cut, closed_early=False) for cut in some)
        if self._commit_cut_rows(ManifestWrite(cuts=rows, present=self._present.now_ms()), now):
            with self._lock:
                self._confirmed_ends.difference_update(cut.bucket for cut in some)

    def _commit_cut_rows(self, write: ManifestWrite, now: int) -> bool:
        """Commit cut rows. Returns whether that succeeded; otherwise, it is retried later."""
        try:
            self._store.commit(self._ownership, write)
        except Retryable as error:
            self._cut_failures += 1
            wait = self._backoff.after(self._cut_failures)
            self._cut_retry_at = now + wait
            self._log_retry(f"the cut of bucket {write.cuts[0].bucket}", error, wait)
            return False
        self._cut_failures = self._cut_retry_at = 0
        self._view.committed(write)
        return True

    def _store_groups(self, closed: ClosedBucket, first: int, now: int) -> None:
        """Store a due group. If only rows are left to commit, also the other due groups of the bucket."""
        due = [first]
        if closed.has_only_rows_to_commit:
            others = [group for group in self._schedule.due_of(closed.bucket, now) if group != first]
            due += others[: _ROWS_PER_COMMIT - 1]
        stored: list[_StoredSegments] = []
        # A row is made with one reading of the present. With two, the row could expire before its data, if a clock is
        # set back in between.
        present = self._present.now_ms()
        for group in due:
            try:
                stored.append(self._store_segments(closed, group, present))
            except Retryable as error:
                self._fail(closed, group, error, now)
        # The group that references the index bucket is committed alone: its failure must not delay other groups.
        named = [one for one in stored if one.group.group == self._designated and closed.index is not None]
        unnamed = [one for one in stored if one not in named]
        for some in (*batches(unnamed, lambda one: row_bytes(one.group), max_rows=_ROWS_PER_COMMIT), named):
            if some:
                self._commit_or_fail(closed, some, now, present)
        self._drop_if_stored(closed)

    def _commit_or_fail(self, closed: ClosedBucket, stored: Sequence[_StoredSegments], now: int, present: int) -> None:
        try:
            with self._stages.timing(Stage.STORE):
                self._commit_groups(closed, stored, present)
        except Retryable as error:
            for one in stored:
                self._fail(closed, one.group.group, error, now)
            return
        for one in stored:
            group = one.group.group
            self._written.pop((closed.bucket, group), None)
            self._schedule.done(group)
            closed.release(group)

    def _fail(self, closed: ClosedBucket, group: int, error: Retryable, now: int) -> None:
        self._log_retry(f"group {group} of bucket {closed.bucket}", error, self._schedule.failed(group, now))

    def _store_segments(self, closed: ClosedBucket, group: int, present: int) -> _StoredSegments:
        """Write a group's segments, unless a replay job has stored them."""
        options = self._options
        life = Lifetime.until(self._bucket_time(closed.bucket, present) + options.policy.time_to_live, present)
        if isinstance(closed.samples, Replayed):
            replayed = closed.samples
            # They were written before now. A worker of an older version computed the date by its own clock.
            life = Lifetime(life.length, min(life.expires, replayed.expires))
            return _StoredSegments(replayed.attempt, life, replayed.groups[group], 0)
        with self._stages.timing(Stage.ENCODE):
            written = self._written.get((closed.bucket, group)) or self._encode(closed.samples, group)
        self._written[closed.bucket, group] = written
        with self._stages.timing(Stage.STORE):
            where = SegmentsOf(options.shard, closed.bucket, group, written.attempt)
            self._store.write_segments(where, written.segments, life)
        size = sum(len(segment.data) for segment in written.segments)
        return _StoredSegments(written.attempt, life, written.stored, size)

    def _encode(self, samples: FrozenBuffer, group: int) -> GroupWrite:
        run, interval = samples.run(group), self._options.policy.flush_interval
        return encode_group(run, samples.bucket, group, self._next_attempt(), interval)

    def _next_attempt(self) -> str:
        self._attempts += 1
        return f"{attempt_prefix(self._ownership)}.{self._attempts}"

    def _commit_groups(self, closed: ClosedBucket, stored: Sequence[_StoredSegments], present: int) -> None:
        """Write the index bucket, if one of the groups references it, and then the rows of the groups."""
        named = next((one for one in stored if one.group.group == self._designated), None)
        index = closed.index if named is not None else None
        index_rows = None
        if index is not None and named is not None:
            index_rows = self._write_index(index, closed.bucket, named.life)
        expires = self._row_expiry(closed.bucket, present)
        rows = tuple(
            one.group.row(
                closed.bucket,
                one.attempt,
                expires=expires,
                data_expires=one.life.expires,
                written_by=self._options.owner_name,
                written_at=present,
                index=index_rows if one is named else None,
            )
            for one in stored
        )
        next_part_id = index.next_part_id if index is not None else None
        write = ManifestWrite(groups=rows, next_part_id=next_part_id, present=present)
        self._store.commit(self._ownership, write)
        self._view.committed(write)
        for one in stored:
            self._count(one)
        self._counters.last_stored_at = present
        if index is not None and index_rows is not None and named is not None:
            self._count_index(index)
            self._copy(index, index_rows.attempt)
            with self._lock:
                self._stored.append(StoredIndexBucket(index.bucket, named.life.expires))

    def _write_index(self, index: ClosedIndex, bucket: int, life: Lifetime) -> IndexBucketRows:
        """Write the index bucket under a new attempt. The attempt of replayed segments would not be unique: every owner
        since then has used it.
        """
        with self._stages.timing(Stage.ENCODE):
            encoded = self._encode_index(index.bucket)
        attempt = self._next_attempt()
        self._store.write_index_bucket(IndexBucketOf(self._options.shard, bucket, attempt), encoded.rows, life)
        self._counters.last_index_bytes = sum(len(row) for row in encoded.rows)
        self._counters.index_bytes += self._counters.last_index_bytes
        return IndexBucketRows(len(encoded.rows), encoded.checksum, attempt)

    def _copy(self, index: ClosedIndex, attempt: str) -> None:
        """Save the local copy. It only makes a restart faster: without it, the index is loaded from the store."""
        with self._lock:
            snapshot = self._snapshot
            if snapshot is None or snapshot.bucket != index.bucket.bucket:
                return
            self._snapshot = None
        try:
            self._index_storage.save(self._view.topic_id, snapshot, attempt)
        except (StrandlineError, OSError) as error:
            _LOG.warning("the local copy could not be saved", shard=str(self._options.shard), error=str(error))

    def _count(self, stored: _StoredSegments) -> None:
        self._counters.stored_segments += stored.group.segments
        self._counters.stored_series += stored.group.series
        self._counters.stored_samples += stored.group.samples
        self._counters.stored_bytes += stored.bytes

    def _count_index(self, index: ClosedIndex) -> None:
        self._counters.index_records += len(index.bucket.part_ids)
        self._counters.ended_keys += index.ended
        self._counters.rolled_over_keys += index.rolled_over

    def _drop_if_stored(self, closed: ClosedBucket) -> None:
        if self._schedule.is_stored(closed.bucket):
            with self._lock:
                self._closed.pop(closed.bucket, None)

    def _log_retry(self, what: str, error: Retryable, wait: int) -> None:
        self._counters.store_retries += 1
        _LOG.warning(
            "storing failed, retrying", what=what, shard=str(self._options.shard), again_in_ms=wait, error=str(error)
        )
