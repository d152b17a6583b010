"""The first half of a replay: a task's records, in order of their offsets, become blocks of units.

A record counts for the job whose range contains its offset, exactly as on the shard: with the same limits, keys and
counts. Samples are kept as columns until the task ends, the job changes, or there are too many. Then they are sorted by
counting, divided by unit and group, and encoded as segments. Undecodable records are kept as they are, up to a number
of bytes.
"""

import json
from bisect import bisect_left

import numpy as np

from strandline.arrays import U32s, U64s
from strandline.index.bucket_keys import BucketKeys
from strandline.index.key_table import MISSING
from strandline.index.numbering import BucketNumbering
from strandline.index.sample_limits import Kept, keep_timely
from strandline.recovery.replay.blocks import Block, BlockKind
from strandline.recovery.replay.faults import FaultyRecord, encode_faults
from strandline.recovery.replay.key_codec import encode_keys, encode_summary
from strandline.recovery.replay.record_batch import RecordBatch
from strandline.recovery.replay.record_counts import RecordCounts, counts_of, counts_to_json, sum_counts
from strandline.recovery.replay.replay_input import JobInput, ReplayInput
from strandline.recovery.replay.sections import pack_sections
from strandline.recovery.replay.series_order import UnitOrder, unit_order
from strandline.store.buffer.collecting import WantedNumbers, collect_samples
from strandline.store.buffer.dictionary import Dictionary
from strandline.store.buffer.open_rows import IncomingRows, OpenRows, Rows
from strandline.store.segment_codec import encode_run
from strandline.store.series_run import SeriesKeys, SeriesRun
from strandline.wire.columns import Columns
from strandline.wire.decode import Decoder

# What a task keeps as columns before it encodes: 20 bytes per sample, and the bytes of distinct keys.
MAX_SAMPLES, MAX_KEY_BYTES = 8 << 20, 256 << 20
# The bytes of undecodable records that it keeps.
MAX_FAULT_BYTES = 64 << 20
ROWS_PER_COLUMN = 1 << 18
# A block is always read completely, so its segments may be larger than those in the store.
BLOCK_SEGMENT_BYTES = 1 << 20


class Mapper:
    """One task. It receives the records of one shard after the other, each shard's in order of their offsets."""

    def __init__(self, wave_input: ReplayInput, *, max_samples: int = MAX_SAMPLES) -> None:
        self._wave_input = wave_input
        self._max_samples = max_samples
        self._decoder = Decoder(wave_input.settings.record_limits)
        self._open: _JobMapping | None = None
        self._blocks: list[Block] = []

    def take(self, shard: int, records: RecordBatch) -> None:
        """Add records. Those that belong to no job of the wave are ignored."""
        for job in self._wave_input.jobs:
            if job.shard.shard == shard:
                first, end = np.searchsorted(records.offsets, (job.start, job.end)).tolist()
                if first < end:
                    self._mapping_of(job).take(records.part(first, end))

    def take_blocks(self) -> list[Block]:
        """Take the blocks that the task has made so far; empty unless it had too much to keep."""
        blocks, self._blocks = self._blocks, []
        return blocks

    def blocks(self) -> list[Block]:
        """End the task and return the remaining blocks."""
        self._close()
        return self.take_blocks()

    def _mapping_of(self, job: JobInput) -> "_JobMapping":
        if self._open is None or self._open.job is not job or self._open.is_full:
            self._close()
            self._open = _JobMapping(self._wave_input, job, self._decoder, self._max_samples)
        return self._open

    def _close(self) -> None:
        if self._open is not None:
            self._blocks += self._open.blocks()
            self._open = None


class _JobMapping:
    """Records of one job, up to the limits of a task."""

    def __init__(self, wave_input: ReplayInput, job: JobInput, decoder: Decoder, max_samples: int) -> None:
        self.job = job
        self._settings = wave_input.settings
        self._decoder = decoder
        self._max_samples = max_samples
        # Assigning numbers without summaries is faster.
        self._keys = BucketKeys() if job.wants_keys else None
        self._numbering = BucketNumbering()
        self._dictionary = Dictionary(wave_input.settings.groups)
        self._columns: list[OpenRows] = []
        self._key_bytes = 0
        self._first_offset = -1
        self._counts = RecordCounts()
        self._faults: list[FaultyRecord] = []
        self._fault_bytes = 0
        left_out = sorted(set(range(wave_input.settings.groups)) - job.groups)
        self._left_out = np.array(left_out, dtype=np.uint64)

    @property
    def is_full(self) -> bool:
        """Whether a limit is reached, so that the records must be encoded before more are sum_counts."""
        return (
            sum(map(len, self._columns)) >= self._max_samples
            or self._key_bytes >= MAX_KEY_BYTES
            or self._fault_bytes >= MAX_FAULT_BYTES
        )

    def take(self, records: RecordBatch) -> None:
        """Add records of the job's range."""
        if self._first_offset < 0:
            self._first_offset = int(records.offsets[0])
        columns = self._decoder.decode(records.values)
        kept = keep_timely(columns, records.times, records.times_checked, self._settings.sample_limits)
        self._count(columns, kept, records)
        columns = kept.columns
        if self._keys is None:
            numbers, new = self._numbering.take(columns)
        else:
            numbers, new = self._keys.take(columns, records.offsets)
            self._key_bytes += int(columns.labels_length[new].sum())
        self._dictionary.define(SeriesKeys(columns.metric[new], columns.key_high[new], columns.key_low[new]))
        self._append(columns, self._without_unwanted_groups(columns, numbers))

    def blocks(self) -> list[Block]:
        """Everything that was sum_counts, as blocks."""
        job, first_unit = self.job, self.job.first_unit
        known = self._dictionary.known()
        order = unit_order(known.keys, known.group, job.bounds)
        blocks = self._sample_blocks(order, known.keys)
        if self._keys is not None:
            summary, part_keys = self._keys.summary(), self._keys.part_keys()
            for unit, numbers in enumerate(order.numbers_by_unit()):
                if len(numbers):
                    data = [encode_summary(summary.take(numbers)), encode_keys(part_keys.take(numbers))]
                    blocks.append(self._block(first_unit + unit, BlockKind.KEYS, pack_sections(data)))
        if self._faults:
            blocks.append(self._block(first_unit, BlockKind.FAULTS, encode_faults(self._faults)))
        counts = json.dumps(counts_to_json(self._counts)).encode()
        blocks.append(self._block(first_unit, BlockKind.COUNTS, counts))
        return blocks

    def _sample_blocks(self, order: UnitOrder, keys: SeriesKeys) -> list[Block]:
        collected = collect_samples((), self._rows(), WantedNumbers.every(order.place), len(order.number))
        found = order.number[collected.position]
        metric, key_high, key_low = keys.metric[found], keys.key_high[found], keys.key_low[found]
        blocks = []
        for part in order.parts:
            first, end = bisect_left(collected.position, part.first), bisect_left(collected.position, part.end)
            if first == end:
                continue
            bounds = collected.first_sample[first : end + 1]
            samples = slice(int(bounds[0]), int(bounds[-1]))
            run = SeriesRun(
                metric[first:end],
                key_high[first:end],
                key_low[first:end],
                bounds - bounds[0],
                collected.time[samples],
                collected.value[samples],
            )
            segments = encode_run(run, target_bytes=BLOCK_SEGMENT_BYTES)
            data = pack_sections([segment.data for segment in segments])
            blocks.append(self._block(self.job.first_unit + part.unit, BlockKind.SAMPLES, data, group=part.group))
        return blocks

    def _block(self, unit: int, kind: BlockKind, data: bytes, *, group: int = -1) -> Block:
        return Block(unit, kind, group, self._first_offset, data)

    def _append(self, columns: Columns, numbers: U32s) -> None:
        incoming = IncomingRows.of(numbers, columns.first_sample, columns.time, columns.value, len(self._dictionary))
        row = sample = 0
        while row < len(numbers):
            if not self._columns or self._columns[-1].is_full:
                self._columns.append(OpenRows(ROWS_PER_COLUMN))
            row, sample = self._columns[-1].fill(incoming, row, sample)

    def _rows(self) -> Rows:
        some = [columns.rows() for columns in self._columns] or [OpenRows(0).rows()]
        self._columns = []
        if len(some) == 1:
            return some[0]
        return Rows(
            np.concatenate([one.series for one in some]),
            np.concatenate([one.time for one in some]),
            np.concatenate([one.value for one in some]),
        )

    def _without_unwanted_groups(self, columns: Columns, numbers: U32s) -> U32s:
        if len(self._left_out) == 0:
            return numbers
        group: U64s = columns.metric % np.uint64(self._settings.groups)
        return np.where(np.isin(group, self._left_out), np.uint32(MISSING), numbers)

    def _count(self, columns: Columns, kept: Kept, records: RecordBatch) -> None:
        offsets, times, values = records.offsets, records.times, records.values
        counts = counts_of(
            columns,
            records=len(values),
            nbytes=sum(map(len, values)),
            too_old=kept.too_old,
            too_far_ahead=kept.too_far_ahead,
        )
        self._counts = sum_counts([self._counts, counts])
        self._faults += [
            FaultyRecord(
                int(offsets[fault.record]), int(times[fault.record]), fault.reason, bytes(values[fault.record])
            )
            for fault in columns.faults
        ]
        self._fault_bytes += sum(len(values[fault.record]) for fault in columns.faults)
