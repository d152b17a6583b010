"""The in-memory counterpart of the runner on Spark: runs jobs in a loop, in this process. For tests and simulations."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from strandline.clock import Clock
from strandline.recovery.replay.blocks import Block
from strandline.recovery.replay.job_result import JobResult
from strandline.recovery.replay.job_settings import group_by_settings, settings_of
from strandline.recovery.replay.mapping import MAX_SAMPLES, Mapper
from strandline.recovery.replay.outcome import fold_outcomes
from strandline.recovery.replay.record_batch import RecordBatch
from strandline.recovery.replay.reducing import StoreOutput, reduce_unit
from strandline.recovery.replay.replay_input import ReplayInput, ReplaySettings, SeriesBound, waves_of
from strandline.recovery.replay.result_codec import encode_result
from strandline.recovery.replay.sampling import sample_from_values, sampled_offsets
from strandline.store.jobs import Job
from strandline.store.protocol import Store

RecordSource = Callable[[int, int, int], Iterator[RecordBatch]]


@dataclass(frozen=True, slots=True)
class TaskSizes:
    """How the work is divided: records per task, records per batch, and how many samples a task keeps before it encodes
    them.
    """

    records_per_task: int = 1 << 16
    records_per_batch: int = 1 << 10
    max_samples: int = MAX_SAMPLES


class MemoryRunner:
    """A `JobRunner` over any source of records: `source(shard, start, end)` returns those of a range, in order."""

    def __init__(
        self,
        store: Store,
        source: RecordSource,
        settings: ReplaySettings,
        clock: Clock,
        *,
        sizes: TaskSizes | None = None,
        bounds: Callable[[Job], Sequence[SeriesBound]] | None = None,
    ) -> None:
        """`bounds` divides a job into units; without it, units are determined from sampled records, as on Spark."""
        self._store = store
        self._source = source
        self._settings = settings
        self._clock = clock
        self._sizes = sizes or TaskSizes()
        self._bounds = bounds or self._sampled_bounds

    def check(self, job: Job) -> None:
        settings_of(job, self._settings)

    def run(self, jobs: Sequence[Job], on_progress: Callable[[float], None]) -> Mapping[Job, JobResult]:
        results: dict[Job, JobResult] = {}
        waves = [
            (settings, wave) for settings, some in group_by_settings(jobs, self._settings) for wave in waves_of(some)
        ]
        for settings, wave in waves:
            results |= self._run_wave(wave, settings)
            on_progress(len(results) / len(jobs))
        return results

    def _run_wave(self, jobs: Sequence[Job], settings: ReplaySettings) -> dict[Job, JobResult]:
        bounds = {job: self._bounds(job) for job in jobs}
        wave_input = ReplayInput.of(jobs, settings, now=self._clock.now_ms(), bounds=bounds)
        blocks: dict[int, list[Block]] = defaultdict(list)
        for shard in sorted({job.shard.shard for job in jobs}):
            mine = [job for job in jobs if job.shard.shard == shard]
            for block in self._blocks(wave_input, shard, mine[0].start, mine[-1].end):
                blocks[block.unit].append(block)
        outcomes = [
            reduce_unit(wave_input, unit, blocks[unit], StoreOutput(self._store, wave_input.job_of_unit(unit)))
            for unit in sorted(blocks)
        ]
        results = {}
        for job, job_input in zip(jobs, wave_input.jobs, strict=True):
            results[job] = fold_outcomes(job_input, outcomes)
            self._store.write_result(job_input.results, [encode_result(results[job])], job_input.result_life)
        return results

    def _blocks(self, wave_input: ReplayInput, shard: int, start: int, end: int) -> Iterator[Block]:
        records = _one_by_one(self._source(shard, start, end))
        while task := list(islice(records, self._sizes.records_per_task)):
            mapper = Mapper(wave_input, max_samples=self._sizes.max_samples)
            for first in range(0, len(task), self._sizes.records_per_batch):
                mapper.take(shard, _batch_of(task[first : first + self._sizes.records_per_batch]))
            yield from mapper.blocks()

    def _sampled_bounds(self, job: Job) -> Sequence[SeriesBound]:
        wanted = sampled_offsets(job.start, job.end)
        values: list[bytes] = []
        for offset, _, _, value in _one_by_one(self._source(job.shard.shard, job.start, job.end)):
            if len(values) < len(wanted) and offset >= wanted[len(values)]:
                values.append(value)
        settings = settings_of(job, self._settings)
        return sample_from_values(job, settings, values).bounds(settings.groups, settings.unit_samples)


# Offset, record time, whether the samples' times were checked, value.
_OneRecord = tuple[int, int, bool, bytes]


def _one_by_one(batches: Iterable[RecordBatch]) -> Iterator[_OneRecord]:
    for batch in batches:
        columns = (batch.offsets.tolist(), batch.times.tolist(), batch.times_checked.tolist())
        yield from zip(*columns, batch.values, strict=True)


def _batch_of(records: Sequence[_OneRecord]) -> RecordBatch:
    offsets, times, times_checked, values = zip(*records, strict=True)
    return RecordBatch(
        np.array(offsets, dtype=np.int64),
        np.array(times, dtype=np.int64),
        np.array(times_checked, dtype=np.bool_),
        values,
    )
