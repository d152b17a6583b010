"""A shard: reads its partition, updates its index and buffer, closes buckets, and passes them to the flusher.

`start` takes and recovers the shard. Then one thread calls `step` repeatedly, and another one `Flusher.step`. Only the
log's poll waits, so a simulation can call both step by step.

Missed records are replayed by the shard itself, bucket by bucket (direct), or by workers. In the latter case, the shard
reads the tail meanwhile, and `ReplayMerge` merges the two.
"""

from collections.abc import Callable

import structlog

from strandline.errors import Retryable
from strandline.node.shard.bucket_confirmation import BucketConfirmation
from strandline.node.shard.bucket_ends import BucketEnds
from strandline.node.shard.checkpoint_publishing import CheckpointPublisher
from strandline.node.shard.closed_bucket import ClosedBucket, ClosedIndex
from strandline.node.shard.ends_watch import EndsWatch
from strandline.node.shard.flusher import Flusher
from strandline.node.shard.ingesting import Ingest, Reading
from strandline.node.shard.log import LogUnreachable, Records
from strandline.node.shard.log_identity import mark_of_last
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.read_horizon import ReadHorizon
from strandline.node.shard.recovering import Recovered, recover, released_on_failure
from strandline.node.shard.replay_merge import ReplayMerge, TailBucket
from strandline.node.shard.replaying import Replay
from strandline.node.shard.segment_cache import SegmentCache
from strandline.node.shard.series_numbers import LiveNumbers, SamplesOnly, SeriesNumbers, TailNumbers
from strandline.node.shard.stages import Stage, Stages
from strandline.node.shard.status import Phase, Status
from strandline.node.throttled_warning import ThrottledWarning
from strandline.recovery.offset_policy import Accepted
from strandline.store.buffer.frozen_buffer import FrozenBuffer
from strandline.store.buffer.memory import MemoryBudget
from strandline.store.buffer.spill import SpillFolder
from strandline.store.buffer.write_buffer import WriteBuffer
from strandline.store.rows import CutRow
from strandline.wire.decode import Decoder

_LOG = structlog.get_logger(__name__)
_NOTHING_ACCEPTED = Accepted()
# How often the ends of the log are requested: while something depends on the answer, and otherwise.
_ENDS_INTERVAL_S, _ENDS_INTERVAL_ACTIVE_S = 1.0, 5.0
_SHORT_POLL_S = 0.02
# How many closed buckets may wait for the store during a replay. Above this, reading pauses.
_MAX_WAITING_BUCKETS = 8


class Shard:
    """One shard that has been taken. Created by `start`. `merge` is set while workers replay for it."""

    def __init__(
        self,
        parts: ShardParts,
        recovered: Recovered,
        status: Status,
        *,
        reads_tail: bool = True,
    ) -> None:
        """Continue as `recovered` plans. Without `reads_tail`, reading ends with the last committed cut."""
        options, plan = parts.options, recovered.plan
        self.parts, self.status = parts, status
        self.ownership, self.view, self.index = recovered.ownership, recovered.view, recovered.index
        self.stages = Stages()
        spill = SpillFolder(options.folder / "spill", options.spill_bytes)
        spill.clear()
        self.memory = MemoryBudget(options.buffer_bytes, spill)
        self.segment_cache = SegmentCache(options.segment_cache_bytes)
        self.flusher = Flusher(
            parts,
            self.ownership,
            self.view,
            status.counters,
            self.stages,
            encode_index=self.index.encode,
            heartbeats=recovered.heartbeats,
        )
        self._reading = Reading(status.counters, self.stages, Decoder(options.record_limits))
        self.position = plan.position
        self._plan = plan
        self._last_record = Records.none(plan.position)
        self._reads_tail = reads_tail
        self.merge = self._merge_with(recovered.replay) if recovered.replay is not None else None
        self._ends = EndsWatch(parts.log, parts.present, parts.clock)
        self.horizon = ReadHorizon(parts.clock)
        self._log_warning = ThrottledWarning("the log is unreachable", str(options.shard), parts.clock)
        self._bucket_ends = BucketEnds(parts, status, plan.known_cuts, self._ends, self._log_warning)
        self._confirmation = BucketConfirmation(parts, self.flusher, self._ends, self.horizon, self._log_warning)
        self._results_warning = ThrottledWarning("the replay's results can't be read", str(options.shard), parts.clock)
        self._is_copy_due = False
        self._checkpoints = CheckpointPublisher(parts, self.view, status)
        done = self.view.progress()
        self.stored_before = (min(done.stored_up_to) + 1 if done is not None else 0) * options.policy.flush_interval
        """Samples before this time were stored when the shard was started, except late ones."""
        self._current = self._open(plan.bucket)
        self._bucket_start = plan.bucket_start
        if done is not None and not plan.known_cuts:
            self._confirmation.closed(done.cuts[-1].bucket, done.cuts[-1])
        replays = plan.known_cuts or self.merge is not None
        if replays:
            status.enter(Phase.REPLAYING, parts.clock.now_ms(), 0.0)
        else:
            status.enter(Phase.CATCHING_UP, parts.clock.now_ms())
        parts.log.seek(plan.position)
        # Close the buckets that end where reading begins.
        self._ingest(Records.none(plan.position))

    @classmethod
    def start(
        cls,
        parts: ShardParts,
        status: Status,
        *,
        take: bool = False,
        accepted: Accepted = _NOTHING_ACCEPTED,
        stopping: Callable[[], bool] = lambda: False,
        reads_tail: bool = True,
    ) -> "Shard":
        """Take the shard and load its index; after that, `step` reads. With `take`, the shard is taken over even from a
        live owner.

        Raises `DataLost`, `LogMismatch`, `AnotherShape` or `StillOwned` if an operator has to decide, the errors of the
        store and the log, and `StartStopped` once `stopping` returns True.
        """
        recovered = recover(parts, status, take=take, accepted=accepted, stopping=stopping)
        with released_on_failure(parts.store, recovered.ownership):
            return cls(parts, recovered, status, reads_tail=reads_tail)

    @property
    def bucket(self) -> int:
        """The open bucket."""
        return self._current.buffer.bucket

    @property
    def buffer(self) -> WriteBuffer:
        """The buffer of the open bucket."""
        return self._current.buffer

    @property
    def is_fully_stored(self) -> bool:
        """Whether all cut buckets are read and stored; without the tail, also whether the last end is checked."""
        if self._bucket_ends.known or self.merge is not None or self.flusher.closed_buckets():
            return False
        return self._reads_tail or not self._confirmation.is_pending

    def step(self) -> int:
        """Poll the log once and process the records. Returns their number.

        Raises fatal errors. While Kafka is unreachable, nothing is cut, and the next step retries. While too many
        closed buckets wait for the store, nothing is read.
        """
        options = self.parts.options
        self.status.turns += 1
        known, records, lag = self.status.counters.new_keys, Records.none(self.position), None
        polls_briefly = not self._is_active() and not self.status.lag  # In a start, nothing may be left to read.
        if self.merge is not None:
            self._continue_merge(self.merge)
        reads, waits = self._reads_tail or bool(self._bucket_ends.known), self.waits_for_store()
        if waits or not reads:
            self.flusher.flush_now()
            self.parts.clock.sleep(options.poll_timeout_s)
        if reads:
            try:
                if waits:
                    self._check_log_ends(idle=False)  # The growing lag must be reported.
                else:
                    with self.stages.timing(Stage.CONSUME):
                        timeout = _SHORT_POLL_S if polls_briefly else options.poll_timeout_s
                        records = self.parts.log.poll(options.poll_records, timeout)
                    self._ingest(records)
                    lag = self._check_log_ends(idle=len(records) == 0)
                self._log_warning.is_over()
            except LogUnreachable as error:
                self.status.counters.log_retries += 1
                self.status.lag = None
                self._log_warning.about(error)
        else:
            self._confirmation.scan_tail()
        index_stored = self._apply_stored()
        self.parts.index_storage.refresh(
            changed=index_stored or self.status.counters.new_keys > known, may_merge=self._is_active()
        )
        self._advance_phase(lag if len(records) or not polls_briefly or not lag else None)
        return len(records)

    def close_at_position(self) -> None:
        """Close the open bucket at the position, because the log no longer has the records that were read, and reading
        can't continue. The rest of the bucket's time falls into the next bucket, like late samples. From now on, steps
        don't read: they may still have to merge a replay by workers before the bucket can be stored.
        """
        if not self._bucket_ends.known and self.position > self._bucket_start:
            self._close_bucket(self.position, early=True)
        self._confirmation.give_up()
        self._bucket_ends.known.clear()
        self._reads_tail = False
        self.status.enter(Phase.CATCHING_UP, self.parts.clock.now_ms())
        self.flusher.flush_now()

    def waits_for_store(self) -> bool:
        """Whether closed buckets must be stored before more is read: because they are too many during a replay, which
        reads faster than the store writes, or so large that the open bucket needs the rest of the spill.
        """
        waiting, tail = self.flusher.closed_buckets(), self.merge.tail if self.merge is not None else ()
        if not waiting and not tail:
            return False
        if not self._is_active() and max(len(waiting), len(tail)) >= _MAX_WAITING_BUCKETS:
            return True
        spilled = sum(closed.spilled_bytes for closed in waiting)
        spilled += sum(one.buffer.status().spilled_bytes for one in tail)
        return 2 * spilled > self.memory.spill.limit

    def close(self) -> None:
        """Release the shard and close the index. Records that are not stored will be read from Kafka again."""
        try:
            self.flusher.release()
        except Retryable as error:
            _LOG.warning("the shard could not be released", shard=str(self.parts.options.shard), error=str(error))
        self.parts.index_storage.close()

    def _continue_merge(self, merge: ReplayMerge) -> None:
        """Close the replayed buckets whose jobs are done, and join the tail after the last one."""
        opened = self.index.open.bucket
        try:
            while len(self.flusher.closed_buckets()) < _MAX_WAITING_BUCKETS and merge.fold_next() is not None:
                pass
            merge.remove_stored_jobs()
            self._results_warning.is_over()
        except Retryable as error:
            self.status.counters.store_retries += 1
            self._results_warning.about(error)
        self._is_copy_due = self._is_copy_due or self.index.open.bucket > opened
        if merge.replay.is_over:
            self._join_tail(merge)
        if merge.is_finished:
            self.merge = None

    def _join_tail(self, merge: ReplayMerge) -> None:
        """Apply the tail to the index, in order: the buckets that were closed meanwhile, then the open one."""
        for waiting in merge.take_tail():
            waiting.numbers.join(self.index)
            self._hand_over(waiting.cut, waiting.buffer, ClosedIndex.of(self.index), cut_committed=False)
        current = self._current.numbers
        if isinstance(current, TailNumbers) and not current.has_joined:
            self._offer_copy()
            current.join(self.index)

    def _ingest(self, records: Records) -> None:
        """Process records, and close buckets where they end."""
        if len(records):
            # Everything that had reached the log by this time was read before.
            came_after = self.horizon.now().complete_at
            self.parts.present.observe_records(int(records.times.max()), came_after)
        rest = records
        while (cut := self._bucket_ends.next_cut(self.bucket, self._bucket_start, rest)) is not None:
            index, offset = cut
            if index:
                self._take(rest.part(0, index))
            self._close_bucket(offset)
            rest = rest.part(index, len(rest))
        self._offer_copy()
        if len(rest):
            self._take(rest)
        self.position = records.position
        self.horizon.read_to(self.position)
        self._confirmation.check()

    def _take(self, records: Records) -> None:
        """Process records of the open bucket."""
        self._offer_copy()
        self._confirmation.read(records.times)
        self._current.take(records)
        self._last_record = records.part(len(records) - 1, len(records))
        # After each part of a batch: the next steps may send requests to the brokers and fail.
        self.position = records.position

    def _offer_copy(self) -> None:
        """Take a snapshot of the index as of the last cut, before the next sample changes it. Only one for several cuts
        without samples in between.
        """
        if self._is_copy_due and not self._is_merging():
            self._is_copy_due = False
            self.flusher.offer_copy(self.index.snapshot())

    def _check_log_ends(self, *, idle: bool) -> int | None:
        """Request the ends of the log regularly, and more often while something depends on them: the phase, or an
        overdue bucket. Returns the lag if a recent answer has just arrived.
        """
        overdue = self._bucket_ends.lacks_end(self.bucket, self.parts.present.now_ms())
        pause = _ENDS_INTERVAL_S if self._confirmation.is_pending else _ENDS_INTERVAL_ACTIVE_S
        if overdue or not self._is_active():
            pause = 0.0 if idle else _ENDS_INTERVAL_S
        self._ends.request(self.position, pause)
        snapshot = self._ends.take()
        if snapshot is None:
            if self._ends.waiting_s > self.parts.options.warn_behind_s:
                self.status.lag = None  # The last known lag is too old.
            return None
        ends = snapshot.ends
        self.status.lag = max(0, ends.last_stable - self.position)
        self.horizon.add(snapshot, self.position)
        self._confirmation.check()
        if self._bucket_ends.pin(self.bucket, snapshot, self.position):
            self._ingest(Records.none(self.position))
        is_recent = self.parts.clock.monotonic() - snapshot.requested_at <= _ENDS_INTERVAL_ACTIVE_S
        return self.status.lag if is_recent else None

    def _merge_with(self, replay: Replay) -> ReplayMerge:
        memory, counters = self.memory, self.status.counters
        return ReplayMerge(self.parts, replay, self.index, flusher=self.flusher, memory=memory, counters=counters)

    def _is_merging(self) -> bool:
        """Whether there are replayed buckets that are not closed yet."""
        return self.merge is not None and not self.merge.replay.is_over

    def _is_active(self) -> bool:
        return self.status.phase is Phase.ACTIVE

    def _close_bucket(self, end: int, *, early: bool = False) -> None:
        with self.stages.timing(Stage.CUT):
            bucket, numbers = self.bucket, self._current.numbers
            known = self._bucket_ends.take()
            # The expiry is set when it is committed.
            last = mark_of_last(self._last_record) if len(self._last_record) else None
            is_confirmed = self._confirmation.closed(bucket, known) and not early
            ours = CutRow(bucket, self._bucket_start, end, expires=0, last=last, closed_early=not is_confirmed)
            cut = known or self._plan.with_loss(ours)
            buffer = self.buffer.freeze()
            if self.merge is not None and isinstance(numbers, TailNumbers) and not numbers.has_joined:
                self.merge.defer(TailBucket(cut, buffer, numbers))
            else:
                index = None if isinstance(numbers, SamplesOnly) else ClosedIndex.of(self.index)
                self._hand_over(cut, buffer, index, cut_committed=known is not None)
            self.status.counters.cuts += 1
            self._current = self._open(bucket + 1)
            self._bucket_start = end

    def _hand_over(self, cut: CutRow, buffer: FrozenBuffer, index: ClosedIndex | None, *, cut_committed: bool) -> None:
        """Pass a closed bucket to the flusher."""
        groups, urgent = self.parts.options.groups, not self._is_active()
        missing = self._plan.missing_groups(cut.bucket, groups)
        for group in frozenset(range(groups)) - missing:
            buffer.release(group)
        self.flusher.add(ClosedBucket(cut, buffer, index, missing, cut_committed=cut_committed, urgent=urgent))
        self._is_copy_due = self._is_copy_due or index is not None

    def _open(self, bucket: int) -> Ingest:
        options = self.parts.options
        self.status.bucket = bucket
        return Ingest(
            self.parts,
            WriteBuffer(
                bucket,
                options.groups,
                self.memory,
                seal_rows=options.seal_rows,
                sealing=lambda: self.stages.timing(Stage.SEAL),
            ),
            self._numbers_of(bucket),
            self._reading,
            stored_groups=frozenset(range(options.groups)) - self._plan.missing_groups(bucket, options.groups),
        )

    def _numbers_of(self, bucket: int) -> SeriesNumbers:
        if self._is_merging():
            return TailNumbers(self.status.counters)
        if bucket == self.index.open.bucket:
            return LiveNumbers(self.index, self.status.counters)
        # Below the index's checkpoint, the stored index buckets are authoritative for keys.
        return SamplesOnly()

    def _apply_stored(self) -> bool:
        """Tell the index which of its buckets have been stored. Returns whether there were any."""
        taken = self.flusher.take_stored()
        for stored in taken:
            self.index.stored(stored.bucket, stored.expires)
            self.view.expire(self.parts.present.settled_ms())
        self._checkpoints.publish()
        return bool(taken)

    def _advance_phase(self, lag: int | None) -> None:
        """Advance the phase. A shard is ACTIVE once everything planned is stored and the lag is small."""
        status = self.status
        if self._is_active():
            return
        if self.merge is not None and self._is_merging():
            status.fraction = self.merge.replay.fraction
            return
        if self._bucket_ends.known:
            first, behind = self._plan.position, self._plan.known_cuts[-1].end
            status.fraction = min(1.0, (self.position - first) / max(1, behind - first))
            return
        status.catch_up(lag, self.parts.clock.now_ms())
        unstored = any(closed.bucket <= self._plan.required for closed in self.flusher.closed_buckets())
        # Only by a current lag.
        if self._reads_tail and lag is not None and lag <= self.parts.options.active_lag and not unstored:
            self.parts.index_storage.refresh_now()  # Make the newest keys visible as well.
            status.enter(Phase.ACTIVE, self.parts.clock.now_ms())
