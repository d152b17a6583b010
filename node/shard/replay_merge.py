"""Merges a replay by workers with the tail that the shard reads meanwhile.

Buckets are closed in order, regardless of the order in which jobs are done. Below the index's checkpoint, a bucket only
supplies the segments of its missing groups; from there on, its key summary is folded into the index. The keys of the
tail are deferred until the last replayed bucket is closed, so that part ids are the same as if everything had been read
in order.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from strandline.index.shard_index import ShardIndex
from strandline.node.shard.closed_bucket import ClosedBucket, ClosedIndex, Replayed
from strandline.node.shard.flusher import Flusher
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.replaying import DoneBucket, Replay
from strandline.node.shard.series_numbers import TailNumbers
from strandline.node.shard.status import Counters
from strandline.recovery.replay.job_result import JobResult, attempt_of
from strandline.recovery.replay.result_codec import read_faults, read_summary
from strandline.recovery.replay.sections import ResultDamaged
from strandline.store.buffer.frozen_buffer import FrozenBuffer
from strandline.store.buffer.memory import MemoryBudget
from strandline.store.buffer.write_buffer import WriteBuffer
from strandline.store.jobs import Job
from strandline.store.rows import CutRow

# The limit of dead letters in flight, in bytes, and how long to wait for their delivery.
_MAX_PENDING_BYTES, _DELIVERY_TIMEOUT_S = 8 << 20, 30.0


@dataclass(frozen=True, slots=True)
class TailBucket:
    """A bucket of the tail that was cut before the end of the replay."""

    cut: CutRow
    buffer: FrozenBuffer
    numbers: TailNumbers


class ReplayMerge:
    """The merge of one replay. Only the thread that updates the index calls it."""

    def __init__(
        self,
        parts: ShardParts,
        replay: Replay,
        index: ShardIndex,
        *,
        flusher: Flusher,
        memory: MemoryBudget,
        counters: Counters,
    ) -> None:
        self.replay = replay
        self._parts, self._index, self._flusher, self._memory = parts, index, flusher, memory
        self._counters = counters
        self._tail: deque[TailBucket] = deque()
        self._unstored_jobs: dict[int, Job] = {}
        self._faults_sent_of: Job | None = None

    @property
    def tail(self) -> tuple[TailBucket, ...]:
        """The deferred buckets of the tail, oldest first."""
        return tuple(self._tail)

    def fold_next(self) -> int | None:
        """Close the next replayed bucket if its job is done. Returns the bucket, or None."""
        self.remove_stored_jobs()
        done = self.replay.next_done()
        if done is None:
            return None
        cut = done.bucket.cut
        # All reads from the store come first: if one fails, nothing has changed, and the bucket can be retried.
        try:
            self._send_faults(done)
            index = self._fold(done)
        except ResultDamaged as error:
            if done.job is None:
                raise
            self.replay.retry_job(done.job, str(error))
            return None
        samples = self._samples(done)
        self.replay.advance()
        if done.job is not None and done.result is not None:
            self._count(done.result)
            self._unstored_jobs[cut.bucket] = done.job
        self._flusher.add(ClosedBucket(cut, samples, index, done.bucket.groups, cut_committed=True, urgent=True))
        self._counters.cuts += 1
        return cut.bucket

    def defer(self, bucket: TailBucket) -> None:
        """Keep a closed bucket of the tail until the end of the replay."""
        self._tail.append(bucket)

    def take_tail(self) -> Iterator[TailBucket]:
        """Remove and return the deferred buckets of the tail, oldest first. Call it after the end of the replay."""
        while self._tail:
            yield self._tail.popleft()

    @property
    def is_finished(self) -> bool:
        """Whether the replay is over and all its jobs are removed."""
        return self.replay.is_over and not self._unstored_jobs and not self._tail

    def remove_stored_jobs(self) -> None:
        """Remove the jobs whose buckets are stored completely."""
        if self._unstored_jobs:
            unstored = {closed.bucket for closed in self._flusher.closed_buckets()}
            for bucket in [one for one in self._unstored_jobs if one not in unstored]:
                self.replay.remove(self._unstored_jobs.pop(bucket))

    def _samples(self, done: DoneBucket) -> FrozenBuffer | Replayed:
        if done.job is None or done.result is None:
            bucket, groups = done.bucket.cut.bucket, self._parts.options.groups
            empty = WriteBuffer(bucket, groups, self._memory, seal_rows=1).freeze()
            for group in frozenset(range(groups)) - done.bucket.groups:
                empty.release(group)
            return empty
        stored = {one.group: one for one in done.result.groups}
        return Replayed(attempt_of(done.job), done.result.data_expires, stored)

    def _fold(self, done: DoneBucket) -> ClosedIndex | None:
        if done.bucket.cut.bucket != self._index.open.bucket:
            return None
        if done.job is not None:
            summary, part_keys = read_summary(self._parts.store, done.job)
            taken = self._index.take_summary(summary, part_keys)
            self._counters.new_keys += taken.new_keys
            self._counters.refused_rows += taken.refused
        return ClosedIndex.of(self._index)

    def _send_faults(self, done: DoneBucket) -> None:
        """Send the records that could not be decoded as dead letters; only once, even if a later step is retried.
        Unlike live reading, this waits for deliveries: there may be a whole bucket of them.
        """
        job = done.job
        if job is None or done.result is None or done.result.counts.faults == 0 or self._faults_sent_of == job:
            return
        letters, waiting = self._parts.dead_letters, 0
        for fault in read_faults(self._parts.store, job):
            letters.send(
                shard=job.shard.shard, offset=fault.offset, time=fault.time, reason=fault.reason, value=fault.value
            )
            waiting += len(fault.value)
            if waiting >= _MAX_PENDING_BYTES:
                letters.wait(_DELIVERY_TIMEOUT_S)
                waiting = 0
        letters.wait(_DELIVERY_TIMEOUT_S)
        self._counters.dead_letters += done.result.counts.faults
        self._faults_sent_of = job

    def _count(self, result: JobResult) -> None:
        counters, counts = self._counters, result.counts
        counters.records += counts.records
        counters.bytes += counts.bytes
        counters.samples += counts.samples
        counters.too_old += counts.too_old
        counters.too_far_ahead += counts.too_far_ahead
        counters.skipped_histograms += counts.skipped_histograms
        counters.skipped_exemplars += counts.skipped_exemplars
        counters.skipped_metadata += counts.skipped_metadata
        dropped = dict(counters.dropped_series)
        for reason, count in counts.dropped_series:
            dropped[reason] = dropped.get(reason, 0) + count
        counters.dropped_series = dropped
