"""Reads the samples of a task, merged from its pinned rows, with limited memory.

Rows are read by their attempt, so their content is what was pinned. Expiry is checked before and after, by the clock
that expires the data: a row that has expired meanwhile fails the task with an error, and is never read as empty.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from strandline.arrays import Rows
from strandline.clock import Clock
from strandline.errors import Fatal
from strandline.jobs.reading.pins import PinnedRow, require_unexpired
from strandline.jobs.reading.series_set import LabelBytes, SeriesSet
from strandline.jobs.reading.series_task import SeriesTask, series_ranges
from strandline.store.merging import merge_runs
from strandline.store.protocol import Store
from strandline.store.rows import Segment, SegmentsOf, ShardId
from strandline.store.segment_codec import runs_checksum, select
from strandline.store.selecting import WantedSeries
from strandline.store.series_run import SeriesRun

SLICE_SAMPLES = 2_000_000
"""The approximate number of samples in memory; twice as many during a merge."""
_READ_THREADS, _ROWS_PER_BATCH = 4, 16
# A row is read completely, and verified by its checksum, if at least this share of its series is needed.
_FULL_READ_SHARE = 0.5


class PinnedRowMissing(Fatal):
    """The segments of a pinned row that has not expired are not those that it references."""


class _TooManySamples(Exception):  # noqa: N818 - internal: read fewer series at a time
    """There are far more samples than expected."""


@dataclass(frozen=True, slots=True)
class SeriesSlice:
    """The samples of some series of a task, in the order of segments. `indices` are the indices of the run's series in
    the task.
    """

    task: SeriesTask
    indices: Rows
    run: SeriesRun

    def labels(self) -> LabelBytes:
        """The labels of the run's series."""
        return self.task.series.labels.take(self.indices)


def read_slices(
    store: Store,
    task: SeriesTask,
    clock: Clock,
    check: Callable[[], None] = lambda: None,
    slice_samples: int = SLICE_SAMPLES,
) -> Iterator[SeriesSlice]:
    """The samples of a task in slices of about `slice_samples`, each with all samples of its series in the window.
    `check` is called before each slice, and may raise. Raises `PinnedRowExpired`, `PinnedRowMissing` and
    `SegmentDamaged`.
    """
    series = task.series
    # Ordered by group, so that a slice needs as few rows as possible.
    order = np.lexsort((series.key_low, series.key_high, series.metric, series.metric % np.uint64(task.groups)))
    with ThreadPoolExecutor(_READ_THREADS, thread_name_prefix="segments") as threads:
        reader = _Reader(store, task, clock, threads, 3 * slice_samples)
        for first, stop in series_ranges(task.expected[order], slice_samples):
            yield from reader.slices(order[first:stop], check)


class _Reader:
    def __init__(
        self, store: Store, task: SeriesTask, clock: Clock, threads: ThreadPoolExecutor, max_samples: int
    ) -> None:
        """At most `max_samples` are read at a time, unless a single series has more."""
        self._store, self._task, self._clock = store, task, clock
        self._threads, self._max_samples = threads, max_samples

    def slices(self, indices: Rows, check: Callable[[], None]) -> Iterator[SeriesSlice]:
        check()
        series = self._task.series
        indices = indices[np.lexsort((series.key_low[indices], series.key_high[indices], series.metric[indices]))]
        try:
            run = self._read(series.take(indices), self._max_samples if len(indices) > 1 else None)
        except _TooManySamples:
            half = len(indices) // 2
            yield from self.slices(indices[:half], check)
            yield from self.slices(indices[half:], check)
            return
        found = WantedSeries(run.metric, run.key_high, run.key_low)
        with_samples = found.wanted_mask(series.metric[indices], series.key_high[indices], series.key_low[indices])
        yield SeriesSlice(self._task, indices[with_samples], run)

    def _read(self, series: SeriesSet, max_samples: int | None) -> SeriesRun:
        rows_by_shard = self._rows_by_shard(series)
        rows = [row for _, of_shard in rows_by_shard for row, _ in of_shard]
        require_unexpired(rows, self._now())
        counted = 0
        by_shard: list[SeriesRun] = []
        for _, of_shard in rows_by_shard:
            runs: list[SeriesRun] = []
            for first in range(0, len(of_shard), _ROWS_PER_BATCH):
                runs += self._threads.map(self._row, of_shard[first : first + _ROWS_PER_BATCH])
                if max_samples is not None and counted + sum(run.samples for run in runs) > max_samples:
                    raise _TooManySamples
            counted += sum(run.samples for run in runs)
            # Oldest bucket first: the later one wins.
            by_shard.append(merge_runs(runs))
        require_unexpired(rows, self._now())
        # Lowest shard first: the higher one wins.
        return merge_runs(by_shard)

    def _rows_by_shard(self, series: SeriesSet) -> list[tuple[int, list[tuple[PinnedRow, WantedSeries]]]]:
        """By ascending shard: its rows, oldest bucket first, with the series to read from each."""
        groups = self._task.groups
        found: list[tuple[int, list[tuple[PinnedRow, WantedSeries]]]] = []
        for shard in sorted({shard for shards in series.shard_sets for shard in shards}):
            holding = np.array([shard in shards for shards in series.shard_sets])
            held = np.flatnonzero(holding[series.shards])
            wanted = WantedSeries(series.metric[held], series.key_high[held], series.key_low[held])
            rows = sorted((row for row in self._task.rows if row.shard == shard), key=lambda row: row.bucket)
            of_group = {group: wanted.of_group(group, groups) for group in {row.group for row in rows}}
            found.append((shard, [(row, of_group[row.group]) for row in rows if len(of_group[row.group])]))
        return found

    def _row(self, given: tuple[PinnedRow, WantedSeries]) -> SeriesRun:
        row, wanted = given
        where = SegmentsOf(ShardId(self._task.dataset, row.shard), row.bucket, row.group, row.attempt)
        reads_all = len(wanted) >= _FULL_READ_SHARE * row.series
        segments = (
            self._store.segments(where)
            if reads_all
            else self._store.segments(where, first=wanted.key(0).to_bytes(), last=wanted.key(-1).to_bytes())
        )
        heads: list[Segment] = []
        runs: list[SeriesRun] = []
        for segment in segments:
            heads.append(Segment(segment.first, segment.seq, segment.data[:8]))
            named = f"{segment.first.hex()}/{segment.seq} of {where}"
            runs.append(select(segment.data, wanted, self._task.times, named=named))
        if reads_all:
            self._compare(row, heads)
        return merge_runs(runs)

    def _compare(self, row: PinnedRow, heads: Sequence[Segment]) -> None:
        if len(heads) == row.segments and runs_checksum(heads).hex() == row.checksum:
            return
        require_unexpired([row], self._now())
        raise PinnedRowMissing(
            f"{row.name} has {len(heads)} segments under attempt {row.attempt}, which do not match the "
            f"{row.segments} of its manifest row",
            remedy="`strandline recover verify` shows what is damaged",
        )

    def _now(self) -> int:
        """By the clock of the server, which expires data; by the local clock if the store has no server."""
        time = self._store.server_time()
        return time if time is not None else self._clock.now_ms()
