"""The samples of a task, merged from its pinned rows, a bounded number at a time.

Rows are read under their attempt, so what is read is what was pinned. Expiry is checked by the clock that expires the
data, before and after: a row that expired meanwhile fails the task by name, and never reads as empty.
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
"""About so many samples are in memory at a time, twice while they are merged."""
_READ_THREADS, _ROWS_PER_BATCH = 4, 16
# A row is read as a whole, and compared with its checksum, if at least this share of its series is wanted.
_FULL_READ_SHARE = 0.5


class PinnedRowMissing(Fatal):
    """The segments of a pinned row are not those that it names, though it has not expired."""


class _TooManySamples(Exception):  # noqa: N818 - a signal to read fewer series at a time, never seen outside
    """Far more samples than were expected."""


@dataclass(frozen=True, slots=True)
class SeriesSlice:
    """Samples of some series of a task, in the order in which segments hold them. `places` are those of the run's
    series among the task's.
    """

    task: SeriesTask
    places: Rows
    run: SeriesRun

    def labels(self) -> LabelBytes:
        """Those of the run's series."""
        return self.task.series.labels.take(self.places)


def read_slices(
    store: Store,
    task: SeriesTask,
    clock: Clock,
    check: Callable[[], None] = lambda: None,
    at_once: int = SLICE_SAMPLES,
) -> Iterator[SeriesSlice]:
    """The samples of a task in slices, each with all samples of its series in the window. `check` is called before each
    slice, and may raise. Raises `PinnedRowExpired`, `PinnedRowMissing` and `SegmentDamaged`.
    """
    series = task.series
    # Group by group, so that the rows of a slice are as few as they can be.
    order = np.lexsort((series.key_low, series.key_high, series.metric, series.metric % np.uint64(task.groups)))
    with ThreadPoolExecutor(_READ_THREADS, thread_name_prefix="segments") as threads:
        reader = _Reader(store, task, clock, threads, 3 * at_once)
        for first, behind in series_ranges(task.expected[order], at_once):
            yield from reader.slices(order[first:behind], check)


class _Reader:
    def __init__(self, store: Store, task: SeriesTask, clock: Clock, threads: ThreadPoolExecutor, most: int) -> None:
        """At most `most` samples are read at once, unless one series has more."""
        self._store, self._task, self._clock, self._threads, self._most = store, task, clock, threads, most

    def slices(self, places: Rows, check: Callable[[], None]) -> Iterator[SeriesSlice]:
        check()
        series = self._task.series
        places = places[np.lexsort((series.key_low[places], series.key_high[places], series.metric[places]))]
        try:
            run = self._read(series.take(places), self._most if len(places) > 1 else None)
        except _TooManySamples:
            half = len(places) // 2
            yield from self.slices(places[:half], check)
            yield from self.slices(places[half:], check)
            return
        found = WantedSeries(run.metric, run.key_high, run.key_low)
        with_samples = found.mark(series.metric[places], series.key_high[places], series.key_low[places])
        yield SeriesSlice(self._task, places[with_samples], run)

    def _read(self, series: SeriesSet, most: int | None) -> SeriesRun:
        work = self._work(series)
        rows = [row for _, of_shard in work for row, _ in of_shard]
        require_unexpired(rows, self._now())
        counted = 0
        by_shard: list[SeriesRun] = []
        for _, of_shard in work:
            runs: list[SeriesRun] = []
            for first in range(0, len(of_shard), _ROWS_PER_BATCH):
                runs += self._threads.map(self._row, of_shard[first : first + _ROWS_PER_BATCH])
                if most is not None and counted + sum(run.samples for run in runs) > most:
                    raise _TooManySamples
            counted += sum(run.samples for run in runs)
            # Oldest bucket first: the later one wins.
            by_shard.append(merge_runs(runs))
        require_unexpired(rows, self._now())
        # Lowest shard first: the higher one wins.
        return merge_runs(by_shard)

    def _work(self, series: SeriesSet) -> list[tuple[int, list[tuple[PinnedRow, WantedSeries]]]]:
        """By shard, rising: its rows, oldest bucket first, with the series that are wanted of each."""
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
        whole = len(wanted) >= _FULL_READ_SHARE * row.series
        segments = (
            self._store.segments(where)
            if whole
            else self._store.segments(where, first=wanted.key(0).to_bytes(), last=wanted.key(-1).to_bytes())
        )
        heads: list[Segment] = []
        runs: list[SeriesRun] = []
        for segment in segments:
            heads.append(Segment(segment.first, segment.seq, segment.data[:8]))
            named = f"{segment.first.hex()}/{segment.seq} of {where}"
            runs.append(select(segment.data, wanted, self._task.times, named=named))
        if whole:
            self._compare(row, heads)
        return merge_runs(runs)

    def _compare(self, row: PinnedRow, heads: Sequence[Segment]) -> None:
        if len(heads) == row.segments and runs_checksum(heads).hex() == row.checksum:
            return
        require_unexpired([row], self._now())
        raise PinnedRowMissing(
            f"{row.name} has {len(heads)} segments under attempt {row.attempt}, which are not the {row.segments} that "
            "its row names",
            remedy="`strandline recover verify` shows what is damaged",
        )

    def _now(self) -> int:
        """By the clock of the server that expires data; by our own where the store has no server."""
        time = self._store.server_time()
        return time if time is not None else self._clock.now_ms()
