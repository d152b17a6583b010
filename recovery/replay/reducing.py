"""The second half of a replay: the blocks of one unit become segments, key summaries and key bytes.

The output depends only on the records and the bounds of the unit, not on the division of records into tasks and batches
or the order in which blocks arrive. So writing a unit again changes nothing.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Protocol

from strandline.recovery.replay.blocks import Block, BlockKind
from strandline.recovery.replay.job_result import FAULTS
from strandline.recovery.replay.key_codec import MAX_ROW_BYTES
from strandline.recovery.replay.merged_keys import merged_key_rows
from strandline.recovery.replay.outcome import CHECKSUM_BYTES, GroupPart, UnitOutcome
from strandline.recovery.replay.record_counts import counts_from_json, sum_counts
from strandline.recovery.replay.replay_input import JobInput, ReplayInput
from strandline.recovery.replay.sections import pack_sections, unpack_sections
from strandline.store.group_write import encode_group
from strandline.store.jobs import ResultRow
from strandline.store.merging import merge_runs
from strandline.store.protocol import Store
from strandline.store.rows import Segment
from strandline.store.segment_codec import decode_segment
from strandline.store.series_run import SeriesRun

# Bytes reserved in a row for its checksum and header.
_RESERVED_BYTES = 64


class UnitOutput(Protocol):
    """Where a unit is written to."""

    def segments(self, group: int, segments: Sequence[Segment]) -> None:
        """Write all segments of a group in this unit."""
        ...

    def rows(self, rows: Sequence[ResultRow]) -> None:
        """Write rows of the job's result."""
        ...


class StoreOutput:
    """Writes a unit to the store, under its job's attempt."""

    def __init__(self, store: Store, job: JobInput) -> None:
        self._store = store
        self._job = job

    def segments(self, group: int, segments: Sequence[Segment]) -> None:
        self._store.write_segments(self._job.segments(group), segments, self._job.data_life)

    def rows(self, rows: Sequence[ResultRow]) -> None:
        self._store.write_result(self._job.results, rows, self._job.result_life)


def reduce_unit(wave_input: ReplayInput, unit: int, blocks: Iterable[Block], output: UnitOutput) -> UnitOutcome:
    """Write one unit of a wave. `blocks` are all of its blocks, in any order."""
    job = wave_input.job_of_unit(unit)
    named = name_of(job)
    samples: dict[int, list[Block]] = defaultdict(list)
    others: dict[BlockKind, list[Block]] = defaultdict(list)
    for block in sorted(blocks, key=lambda one: one.first_offset):
        if block.kind is BlockKind.SAMPLES:
            samples[block.group].append(block)
        else:
            others[block.kind].append(block)
    groups = [_write_group(wave_input, job, group, samples[group], output) for group in sorted(samples)]
    keys = key_rows = 0
    for written in merged_key_rows(unit - job.first_unit, others[BlockKind.KEYS], named=named):
        output.rows(written.rows)
        keys += written.keys
        key_rows += 1
    fault_rows = _fault_rows([block.data for block in others[BlockKind.FAULTS]])
    if fault_rows:
        output.rows(fault_rows)
    return UnitOutcome(
        unit=unit,
        groups=tuple(groups),
        counts=sum_counts(counts_from_json(json.loads(block.data)) for block in others[BlockKind.COUNTS]),
        keys=keys,
        key_rows=key_rows,
        fault_rows=len(fault_rows),
    )


def name_of(job: JobInput) -> str:
    """A job's name for messages."""
    return f"the replay job of shard {job.shard}, bucket {job.bucket}, attempt {job.attempt!r}"


def _write_group(
    wave_input: ReplayInput, job: JobInput, group: int, blocks: Sequence[Block], output: UnitOutput
) -> GroupPart:
    run = merge_runs([part for block in blocks for part in _runs(block, name_of(job))])
    written = encode_group(run, job.bucket, group, job.attempt, wave_input.settings.flush_interval)
    output.segments(group, written.segments)
    return GroupPart(
        group=group,
        series=written.series,
        samples=written.samples,
        least_time=int(run.time.min()),
        greatest_time=int(run.time.max()),
        checksums=b"".join(segment.data[:CHECKSUM_BYTES] for segment in written.segments),
        late=written.late,
    )


def _runs(block: Block, named: str) -> list[SeriesRun]:
    where = f"on its way to unit {block.unit} of {named}"
    return [decode_segment(data, named=where) for data in unpack_sections(block.data, named=named)]


def _fault_rows(parts: Sequence[bytes]) -> list[ResultRow]:
    stream, size = b"".join(parts), MAX_ROW_BYTES - _RESERVED_BYTES
    return [
        ResultRow(FAULTS, seq, pack_sections([stream[first : first + size]]))
        for seq, first in enumerate(range(0, len(stream), size))
    ]
