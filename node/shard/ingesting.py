"""From records to the write buffer, one batch at a time: decode, apply the limits, look up the keys, append.

An `Ingest` belongs to one open bucket. The shard decides how its records affect the index, by passing the
`SeriesNumbers`.
"""

from dataclasses import dataclass, field

import numpy as np

from strandline.arrays import U32s
from strandline.index.key_table import MISSING
from strandline.index.sample_limits import keep_timely
from strandline.node.shard.dead_letter_log import DeadLetterLog
from strandline.node.shard.log import Records
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.series_numbers import SeriesNumbers
from strandline.node.shard.stages import Stage, Stages
from strandline.node.shard.status import Counters
from strandline.store.buffer.write_buffer import WriteBuffer
from strandline.wire.columns import Columns
from strandline.wire.decode import Decoder, batches_within

MAX_UNPACKED = 32 << 20
"""A part of a batch has at most this many unpacked bytes, or is one record."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the ingests of successive buckets share."""

    counters: Counters
    stages: Stages
    decoder: Decoder
    dead_letter_log: DeadLetterLog = field(default_factory=DeadLetterLog)


class Ingest:
    """Adds the records of one bucket to its buffer.

    `stored_groups` have their rows already: their samples update their keys but are not buffered.
    """

    def __init__(
        self,
        parts: ShardParts,
        buffer: WriteBuffer,
        numbers: SeriesNumbers,
        reading: Reading,
        *,
        stored_groups: frozenset[int] = frozenset(),
    ) -> None:
        self.buffer = buffer
        self.numbers = numbers
        self._parts, self._counters, self._stages = parts, reading.counters, reading.stages
        self._decoder, self._dead_letter_log = reading.decoder, reading.dead_letter_log
        self._stored_groups = np.array(sorted(stored_groups), dtype=np.uint64)

    def take(self, records: Records) -> None:
        """Add records of the bucket, in the order of their offsets. At most about `MAX_UNPACKED` bytes are unpacked at
        a time.
        """
        for start, end in batches_within(records.values, MAX_UNPACKED, self._parts.options.record_limits):
            self._take(records.part(start, end))

    def _take(self, records: Records) -> None:
        options, counters, stages = self._parts.options, self._counters, self._stages
        with stages.timing(Stage.SNAPPY):
            unpacked = self._decoder.unpack(records.values)
        with stages.timing(Stage.DECODE):
            columns = self._decoder.decode_unpacked(unpacked)
            self._count(records, columns)
            kept = keep_timely(columns, records.times, records.times_checked, options.sample_limits)
        counters.too_old += kept.too_old
        counters.too_far_ahead += kept.too_far_ahead
        columns = kept.columns
        with stages.timing(Stage.LOOK_UP):
            numbers, newly_active = self.numbers.take(columns, records.offsets)
        with stages.timing(Stage.APPEND):
            self.buffer.define(
                columns.metric[newly_active], columns.key_high[newly_active], columns.key_low[newly_active]
            )
            self.buffer.append(self._wanted(columns, numbers), columns.first_sample, columns.time, columns.value)

    def _wanted(self, columns: Columns, numbers: U32s) -> U32s:
        if len(self._stored_groups) == 0:
            return numbers
        group = columns.metric % np.uint64(self._parts.options.groups)
        return np.where(np.isin(group, self._stored_groups), np.uint32(MISSING), numbers)

    def _count(self, records: Records, columns: Columns) -> None:
        counters, skipped = self._counters, columns.skipped
        counters.records += len(records)
        # The newest of this batch, not of all: one record from the future must not hide the lag of later ones.
        if (newest := int(records.times.max())) >= 0:
            counters.newest_record_at = newest
        counters.bytes += sum(map(len, records.values))
        counters.samples += len(columns.time)
        counters.skipped_exemplars += skipped.exemplars
        counters.skipped_histograms += skipped.histograms
        counters.skipped_metadata += skipped.metadata
        for verdict, count in skipped.series.items():
            # A new dictionary each time: another thread may be iterating over the old one.
            dropped = counters.dropped_series
            counters.dropped_series = dropped | {verdict.name: dropped.get(verdict.name, 0) + count}
        for fault in columns.faults:
            counters.dead_letters += 1
            self._parts.dead_letters.send(
                shard=self._parts.options.shard.shard,
                offset=int(records.offsets[fault.record]),
                time=int(records.times[fault.record]),
                reason=fault.reason,
                value=records.values[fault.record],
            )
            self._dead_letter_log.add(int(records.offsets[fault.record]), fault.reason)
        self._dead_letter_log.log_if_due(self._parts.options.shard, self._parts.clock)
