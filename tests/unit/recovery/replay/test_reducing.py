"""Blocks to segments, rows and outcomes; units to a result."""

from collections.abc import Sequence

import numpy as np
import pytest

from strandline.index.key_summary import KeySummary, PartKeyBytes
from strandline.recovery.replay.blocks import Block, BlockKind
from strandline.recovery.replay.faults import FaultyRecord, decode_faults, encode_faults
from strandline.recovery.replay.job_result import FAULTS, KEYS, SUMMARY, JobResult
from strandline.recovery.replay.key_codec import KEYS_PER_ROW, decode_keys, decode_summary, encode_keys, encode_summary
from strandline.recovery.replay.mapping import Mapper
from strandline.recovery.replay.merged_keys import ROWS_PER_UNIT, merged_key_rows
from strandline.recovery.replay.outcome import UnitOutcome, fold_outcomes
from strandline.recovery.replay.record_counts import RecordCounts
from strandline.recovery.replay.reducing import StoreOutput, reduce_unit
from strandline.recovery.replay.replay_input import ReplayInput, SeriesBound
from strandline.recovery.replay.sections import pack_sections, unpack_sections
from strandline.store.group_write import encode_group
from strandline.store.jobs import ResultRow
from strandline.store.rows import SegmentsOf
from strandline.store.segment_codec import runs_checksum
from strandline.store.series_run import SeriesRun
from support import replays
from support.replays import HOUR, DictStore, LogRecord, batch_of, key_of, labels, leased_job

pytestmark = pytest.mark.unit

JOB = leased_job(0, 1000)
SERIES = [labels(metric, name) for metric in ("up", "load", "free", "used") for name in "abcdefgh"]


def records(count: int) -> list[LogRecord]:
    return [
        LogRecord(
            offset, 1000 * HOUR, tuple((labels, ((1000 * HOUR - HOUR * (offset % 3), offset),)) for labels in SERIES)
        )
        for offset in range(count)
    ]


def replayed(
    some: Sequence[LogRecord], bounds: Sequence[SeriesBound] = (), *, backwards: bool = False
) -> tuple[DictStore, JobResult]:
    """Each record in a separate task."""
    store = DictStore()
    given = ReplayInput.of([JOB], replays.settings(), now=0, bounds={JOB: bounds})
    blocks: list[Block] = []
    for record in some:
        mapper = Mapper(given)
        mapper.take(0, batch_of([record]))
        blocks += mapper.blocks()
    if backwards:
        blocks.reverse()
    outcomes = []
    for unit in range(given.units):
        unit_blocks = [block for block in blocks if block.unit == unit]
        outcome = reduce_unit(given, unit, unit_blocks, StoreOutput(store, given.jobs[0]))
        outcomes.append(UnitOutcome.from_bytes(outcome.to_bytes()))
    return store, fold_outcomes(given.jobs[0], reversed(outcomes))


def middle_bounds() -> list[SeriesBound]:
    bounds = sorted(SeriesBound(key_of(labels)[0] % 4, *key_of(labels)) for labels in SERIES)
    return [bounds[5], bounds[6], bounds[20]]


def test_blocks_may_arrive_in_any_order() -> None:
    some = records(9)
    forwards, backwards = replayed(some), replayed(some, backwards=True)
    assert forwards[1] == backwards[1]
    assert forwards[0].written_segments == backwards[0].written_segments
    assert forwards[0].written_rows == backwards[0].written_rows


def test_a_groups_checksum_is_that_of_its_segments_in_order_through_all_units() -> None:
    store, result = replayed(records(9), middle_bounds())
    for group in result.groups:
        segments = list(store.segments(SegmentsOf(JOB.shard, JOB.bucket, group.group, "plan.1")))
        assert (group.segments, group.checksum) == (len(segments), runs_checksum(segments))
    assert sum(group.segments for group in result.groups) > sum(
        group.segments for group in replayed(records(9))[1].groups
    )


def test_a_result_does_not_depend_on_the_units() -> None:
    one, several = replayed(records(9))[1], replayed(records(9), middle_bounds())[1]

    def fields_of_groups(result: JobResult) -> list[object]:
        return [
            (group.group, group.series, group.samples, group.least_time, group.greatest_time, group.late)
            for group in result.groups
        ]

    assert fields_of_groups(one) == fields_of_groups(several)
    assert one.counts == several.counts
    assert sum(late.samples for group in one.groups for late in group.late) == 2 * len(SERIES)


def test_a_group_without_samples_is_reported_as_a_shard_reports_it() -> None:
    given = ReplayInput.of([JOB], replays.settings(), now=0, bounds={})
    result = fold_outcomes(given.jobs[0], [])
    assert result.groups == tuple(
        encode_group(SeriesRun.empty(), JOB.bucket, group, "plan.1", HOUR).stored for group in range(4)
    )
    assert result.counts == RecordCounts()


def test_outcomes_of_other_jobs_do_not_count() -> None:
    jobs = [leased_job(0, 5, bucket=1), leased_job(5, 9, bucket=2)]
    given = ReplayInput.of(jobs, replays.settings(), now=0, bounds={})
    outcomes = [UnitOutcome(unit, (), RecordCounts(records=10 + unit)) for unit in (0, 1)]
    assert [fold_outcomes(job, outcomes).counts.records for job in given.jobs] == [10, 11]


def test_faults_are_rows_of_at_most_a_megabyte() -> None:
    faults = [FaultyRecord(offset, 0, "why", bytes([offset]) * 900_000) for offset in range(5)]
    blocks = [Block(0, BlockKind.FAULTS, -1, fault.offset, encode_faults([fault])) for fault in reversed(faults)]
    store = DictStore()
    given = ReplayInput.of([JOB], replays.settings(), now=0, bounds={})
    outcome = reduce_unit(given, 0, blocks, StoreOutput(store, given.jobs[0]))
    rows = list(store.result(given.jobs[0].results, FAULTS))
    assert outcome.fault_rows == len(rows) == 5
    assert max(len(row.data) for row in rows) <= 1_000_000
    chunks = [unpack_sections(row.data, named="a job")[0] for row in rows]
    assert list(decode_faults(chunks, named="a job")) == faults


def key_block(numbers: np.ndarray, first_offset: int, times: np.ndarray) -> Block:
    """Keys by number; their bytes are the number. A key is met at the offset of its block."""
    hashes = numbers.astype(np.uint64)
    summary = KeySummary(
        hashes, hashes, hashes, times, times, np.full(len(numbers), first_offset), np.arange(len(numbers))
    )
    keys = PartKeyBytes(8 * np.arange(len(numbers) + 1), numbers.astype(np.int64).view(np.uint8))
    data = pack_sections([encode_summary(summary), encode_keys(keys)])
    return Block(0, BlockKind.KEYS, -1, first_offset, data)


def opened(pairs: Sequence[tuple[ResultRow, ResultRow]]) -> tuple[KeySummary, list[int]]:
    summaries, numbers = [], []
    for summary_row, keys_row in pairs:
        assert (summary_row.kind, keys_row.kind, summary_row.seq) == (SUMMARY, KEYS, keys_row.seq)
        summaries.append(decode_summary(summary_row.data, named="a job"))
        keys = decode_keys(keys_row.data, len(summaries[-1]), named="a job")
        numbers += keys.keys.view(np.int64).tolist()
    return KeySummary.concatenated(summaries), numbers


def test_each_key_is_reported_once_at_its_first_record_with_the_times_of_all_blocks() -> None:
    blocks = [
        key_block(np.array([5, 3]), 0, np.array([50, 30])),
        key_block(np.array([3, 9]), 1, np.array([20, 90])),
        key_block(np.array([9, 5, 1]), 2, np.array([95, 51, 10])),
    ]
    summary, numbers = opened([key_row.rows for key_row in merged_key_rows(0, blocks, named="a job")])
    assert numbers == summary.key_low.tolist() == [5, 3, 9, 1]
    assert summary.least.tolist() == [50, 20, 90, 10]
    assert summary.greatest.tolist() == [51, 30, 95, 10]
    assert summary.offset.tolist() == [0, 0, 1, 2]
    assert summary.position.tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize("size", [1000, KEYS_PER_ROW - 1, KEYS_PER_ROW, 2 * KEYS_PER_ROW + 3, 50_000])
def test_rows_of_keys_end_at_the_same_keys_as_without_blocks(size: int) -> None:
    count = 40_000
    numbers, times = np.random.default_rng(3).permutation(count), np.arange(count)
    blocks = [key_block(numbers[at : at + size], at, times[at : at + size]) for at in range(0, count, size)]
    rows = list(merged_key_rows(3, blocks, named="a job"))
    assert [key_row.rows[0].seq for key_row in rows] == [3 * ROWS_PER_UNIT + number for number in range(3)]
    assert [key_row.keys for key_row in rows] == [KEYS_PER_ROW, KEYS_PER_ROW, count - 2 * KEYS_PER_ROW]
    summary, found = opened([key_row.rows for key_row in rows])
    assert found == summary.key_low.tolist() == numbers.tolist()


def test_a_last_block_without_a_new_key_does_not_hold_back_the_keys_before_it() -> None:
    blocks = [key_block(np.array([5, 3]), 0, np.array([50, 30])), key_block(np.array([3]), 1, np.array([20]))]
    assert sum(key_row.keys for key_row in merged_key_rows(0, blocks, named="a job")) == 2


def test_a_unit_without_keys_has_no_rows_of_them() -> None:
    assert list(merged_key_rows(0, [], named="a job")) == []
