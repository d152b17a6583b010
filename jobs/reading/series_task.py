"""What one task reads: series, a window of time, and the pinned rows that may hold their samples. Pure.

A task may be about any series: what counts is that it has *all* rows whose sample times overlap its window, of all
shards that may hold one of its series. So duplicates meet within a task, wherever they were stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strandline.arrays import F64s
from strandline.jobs.reading.pins import PinnedRow
from strandline.jobs.reading.series_set import SeriesSet
from strandline.time_range import TimeRange


@dataclass(frozen=True, slots=True)
class SeriesTask:
    """The samples of some series from one time to another, as pinned rows have them. `expected` is an estimate of how
    many samples each series has there.
    """

    dataset: str
    groups: int
    series: SeriesSet
    expected: F64s
    times: TimeRange
    rows: tuple[PinnedRow, ...]


def rows_of(series: SeriesSet, groups: int, rows: Sequence[PinnedRow], times: TimeRange) -> tuple[PinnedRow, ...]:
    """Those of some rows that may hold samples of the series in a window."""
    held = {
        (shard, int(group))
        for number, shards in enumerate(series.shard_sets)
        for group in np.unique(series.metric[series.shards == number] % np.uint64(groups))
        for shard in shards
    }
    return tuple(row for row in rows if (row.shard, row.group) in held and row.overlaps(times))


def expected_samples(
    series: SeriesSet,
    groups: int,
    rows: Sequence[PinnedRow],
    times: TimeRange,
    known: dict[tuple[int, int], int],
) -> F64s:
    """About how many samples each series has in a window: as many as the average series of its group in its shards.
    `known` is how many series each of those groups has.
    """
    samples: dict[tuple[int, int], float] = {}
    for row in rows:
        place = (row.shard, row.group)
        samples[place] = samples.get(place, 0.0) + row.samples * _share(row, times)
    each = np.zeros((len(series.shard_sets), groups))
    for number, shards in enumerate(series.shard_sets):
        for (shard, group), count in samples.items():
            if shard in shards:
                each[number, group] += count / max(1, known.get((shard, group), 0))
    expected: F64s = each[series.shards, (series.metric % np.uint64(groups)).astype(np.int64)]
    return expected


def series_ranges(expected: F64s, most: float) -> list[tuple[int, int]]:
    """Neighbours that together have about `most` samples: places from the first up to, not including, the second. At
    least one series is in each.
    """
    if not len(expected):
        return []
    number = np.floor((np.cumsum(expected) - expected) / most)
    begins = np.flatnonzero(np.diff(number, prepend=-1.0))
    return list(zip(begins.tolist(), [*begins[1:].tolist(), len(expected)], strict=True))


def _share(row: PinnedRow, times: TimeRange) -> float:
    """About which part of a row's samples lies in a window."""
    overlap = min(row.greatest_time, times.last) - max(row.least_time, times.first) + 1
    return max(0, overlap) / (row.greatest_time - row.least_time + 1)
