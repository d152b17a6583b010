"""A replay stores the same as a shard that reads the same records."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from strandline.clock import ManualClock
from strandline.index.sample_limits import SampleLimits
from strandline.node.shard.index_storage import MemoryStorage
from strandline.node.shard.ingesting import Ingest, Reading
from strandline.node.shard.log import NO_TIME, Records
from strandline.node.shard.series_numbers import SamplesOnly
from strandline.node.shard.stages import Stages
from strandline.node.shard.status import Counters
from strandline.recovery.replay.job_result import JobResult
from strandline.recovery.replay.memory_runner import MemoryRunner, TaskSizes
from strandline.recovery.replay.replay_input import ReplaySettings
from strandline.store.buffer.memory import MemoryBudget
from strandline.store.buffer.spill import SpillFolder
from strandline.store.buffer.write_buffer import WriteBuffer
from strandline.store.group_write import GroupWrite, encode_group
from strandline.store.rows import SegmentsOf
from strandline.wire.decode import Decoder, Limits
from support.replays import HOUR, POISON, DictStore, LogRecord, labels, leased_job, source_of
from support.shard_world import World

pytestmark = pytest.mark.unit

GROUPS = 4
BUCKET = 1000
LIMITS = SampleLimits(2 * HOUR, HOUR)
RECORD_LIMITS = Limits(record_bytes=100_000, labels=3)


def records() -> list[LogRecord]:
    """Duplicate, late and future samples, series without samples, invalid labels and an undecodable record. Some
    records are marked as checked, and some have no time.
    """
    rng = np.random.default_rng(5)
    made = []
    for offset in range(100, 160):
        time = BUCKET * HOUR + (offset - 100) * 1000
        series = []
        for _ in range(20):
            metric, name = f"m{rng.integers(0, 9)}", f"n{rng.integers(0, 9)}"
            times = time + rng.integers(-3 * HOUR, 3 * HOUR, rng.integers(0, 4)) // HOUR * HOUR
            series.append((labels(metric, name), tuple((int(at), float(rng.integers(0, 99))) for at in times)))
        series.append((((("__name__", "bad"), ("", "empty"))), ((time, 1.0),)))
        series.append((tuple((f"l{number}", "x") for number in range(5)), ((time, 1.0),)))
        made.append(
            LogRecord(
                offset + offset // 130,
                NO_TIME if offset % 7 == 3 else time,
                tuple(series) if offset % 17 else None,
                times_checked=offset % 5 == 0,
            )
        )
    return made


@pytest.fixture
def by_shard(tmp_path: Path) -> tuple[list[GroupWrite], Counters, list[tuple[int, int, bytes]]]:
    """The groups as a shard encodes them, with its counters and dead letters."""
    with closing(World(tmp_path, groups=GROUPS, sample_limits=LIMITS, record_limits=RECORD_LIMITS)) as world:
        counters = Counters()
        memory = MemoryBudget(1 << 30, SpillFolder(tmp_path / "spill", 1 << 30))
        buffer = WriteBuffer(BUCKET, GROUPS, memory, seal_rows=64)
        ingest = Ingest(
            world.parts(MemoryStorage()), buffer, SamplesOnly(), Reading(counters, Stages(), Decoder(RECORD_LIMITS))
        )
        some = records()
        for first in range(0, len(some), 7):
            part = some[first : first + 7]
            offsets, times = np.array([record.offset for record in part]), np.array([record.time for record in part])
            checked = np.array([record.times_checked for record in part])
            epochs = np.zeros(len(part), dtype=np.int64)
            ingest.take(
                Records(offsets, times, epochs, checked, [record.value for record in part], int(offsets[-1]) + 1)
            )
        frozen = buffer.freeze()
        groups = [encode_group(frozen.run(group), BUCKET, group, "plan.1", HOUR) for group in range(GROUPS)]
        letters = [(letter.offset, letter.time, letter.value) for letter in world.dead_letters.letters]
    return groups, counters, letters


@pytest.fixture
def replayed() -> tuple[DictStore, JobResult]:
    store = DictStore()
    settings = ReplaySettings(GROUPS, HOUR, RECORD_LIMITS, LIMITS, HOUR)
    job = leased_job(0, 1000, bucket=BUCKET)
    split = TaskSizes(records_per_task=11, records_per_batch=4, max_samples=100)
    runner = MemoryRunner(store, source_of({0: records()}), settings, ManualClock(), sizes=split)
    return store, runner.run([job], lambda _: None)[job]


def test_segments_and_their_rows_equal_those_of_a_shard(
    by_shard: tuple[list[GroupWrite], Counters, object], replayed: tuple[DictStore, JobResult]
) -> None:
    store, result = replayed
    job = leased_job(0, 1000, bucket=BUCKET)
    assert result.groups == tuple(group.stored for group in by_shard[0])
    assert sum(group.samples for group in result.groups) > 500
    assert any(group.late for group in result.groups)
    for group in by_shard[0]:
        where = SegmentsOf(job.shard, BUCKET, group.group, "plan.1")
        assert list(store.segments(where)) == list(group.segments)


def test_counts_are_those_of_a_shard(
    by_shard: tuple[object, Counters, object], replayed: tuple[object, JobResult]
) -> None:
    counts, counters = replayed[1].counts, by_shard[1]
    for name in ("records", "bytes", "samples", "too_old", "too_far_ahead"):
        assert getattr(counts, name) == getattr(counters, name) > 0
    assert counts.faults == counters.dead_letters > 0
    assert dict(counts.dropped_series) == counters.dropped_series
    assert {"EMPTY_NAME", "TOO_MANY_LABELS"} <= counters.dropped_series.keys()


def test_undecodable_records_are_reported(
    by_shard: tuple[object, Counters, list[tuple[int, int, bytes]]],
) -> None:
    assert by_shard[2] == [(record.offset, record.time, POISON) for record in records() if record.series is None]
