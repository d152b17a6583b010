"""The twin of the runner on Spark: the same jobs in a loop, in this process. For tests and simulations."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from strandline.arrays import I64s
from strandline.clock import Clock
from strandline.recovery.replay.blocks import Block
from strandline.recovery.replay.job_result import JobResult
from strandline.recovery.replay.mapping import MOST_SAMPLES, Mapper
from strandline.recovery.replay.outcome import fold_outcomes
from strandline.recovery.replay.reducing import StoreOutput, reduce_unit
from strandline.recovery.replay.replay_input import ReplayInput, ReplaySettings, SeriesBound, waves_of
from strandline.recovery.replay.result_codec import encode_result
from strandline.recovery.replay.sampling import sample_of, sampled_offsets
from strandline.store.jobs import Job
from strandline.store.protocol import Store

# Offsets, record times in milliseconds and values, in order.
RecordBatch = tuple[I64s, I64s, Sequence[bytes]]
RecordSource = Callable[[int, int, int], Iterator[RecordBatch]]


@dataclass(frozen=True, slots=True)
class Split:
    """How the work is divided: so many records a task, and of those so many a batch; and how many samples a task
    keeps before it encodes them.
    """

    records_a_task: int = 1 << 16
    records_a_batch: int = 1 << 10
    most_samples: int = MOST_SAMPLES


class MemoryRunner:
    """A `JobRunner` over any source of records: `source(shard, start, end)` gives those of a range, in order."""

    def __init__(
        self,
        store: Store,
        source: RecordSource,
        settings: ReplaySettings,
        clock: Clock,
        *,
        split: Split | None = None,
        bounds: Callable[[Job], Sequence[SeriesBound]] | None = None,
    ) -> None:
        """`bounds` divides a job into units; without it that is done as for Spark, by a few of its records."""
        self._store = store
        self._source = source
        self._settings = settings
        self._clock = clock
        self._split = split or Split()
        self._bounds = bounds or self._sampled_bounds

    def run(self, jobs: Sequence[Job], heard: Callable[[float], None]) -> Mapping[Job, JobResult]:
        results: dict[Job, JobResult] = {}
        for wave in waves_of(jobs):
            results |= self._run_wave(wave)
            heard(len(results) / len(jobs))
        return results

    def _run_wave(self, jobs: Sequence[Job]) -> dict[Job, JobResult]:
        bounds = {job: self._bounds(job) for job in jobs}
        given = ReplayInput.of(jobs, self._settings, now=self._clock.now_ms(), bounds=bounds)
        blocks: dict[int, list[Block]] = defaultdict(list)
        for shard in sorted({job.shard.shard for job in jobs}):
            mine = [job for job in jobs if job.shard.shard == shard]
            for block in self._blocks(given, shard, mine[0].start, mine[-1].end):
                blocks[block.unit].append(block)
        outcomes = [
            reduce_unit(given, unit, blocks[unit], StoreOutput(self._store, given.job_of_unit(unit)))
            for unit in sorted(blocks)
        ]
        results = {}
        for job, told in zip(jobs, given.jobs, strict=True):
            results[job] = fold_outcomes(told, outcomes)
            self._store.write_result(told.results, [encode_result(results[job])], told.results_expire)
        return results

    def _blocks(self, given: ReplayInput, shard: int, start: int, end: int) -> Iterator[Block]:
        records = _one_by_one(self._source(shard, start, end))
        while task := list(islice(records, self._split.records_a_task)):
            mapper = Mapper(given, most_samples=self._split.most_samples)
            for first in range(0, len(task), self._split.records_a_batch):
                offsets, times, values = zip(*task[first : first + self._split.records_a_batch], strict=True)
                mapper.take(shard, np.array(offsets, dtype=np.int64), np.array(times, dtype=np.int64), values)
            yield from mapper.blocks()

    def _sampled_bounds(self, job: Job) -> Sequence[SeriesBound]:
        wanted = sampled_offsets(job.start, job.end)
        values: list[bytes] = []
        for offset, _, value in _one_by_one(self._source(job.shard.shard, job.start, job.end)):
            if len(values) < len(wanted) and offset >= wanted[len(values)]:
                values.append(value)
        return sample_of(job, self._settings, values).bounds(self._settings.groups, self._settings.unit_samples)


def _one_by_one(batches: Iterable[RecordBatch]) -> Iterator[tuple[int, int, bytes]]:
    for offsets, times, values in batches:
        yield from zip(offsets.tolist(), times.tolist(), values, strict=True)
