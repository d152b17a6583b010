"""The input of a task: series, a time window, and the pinned rows that may have their samples. Pure.

A task may have any series, but it must have *all* rows whose sample times overlap its window, of all shards that may
have one of its series. All duplicates of a sample are then in the same task, wherever they are stored.
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
    """Reads the samples of some series in a time range from pinned rows. `expected` is the estimated number of samples
    per series.
    """

    dataset: str
    groups: int
    series: SeriesSet
    expected: F64s
    times: TimeRange
    rows: tuple[PinnedRow, ...]


def rows_of(series: SeriesSet, groups: int, rows: Sequence[PinnedRow], times: TimeRange) -> tuple[PinnedRow, ...]:
    """The rows that may have samples of the series in a time range."""
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
    """The estimated number of samples of each series in a time range: the mean of its group in its shards. `known` is
    the number of series by shard and group.
    """
    samples: dict[tuple[int, int], float] = {}
    for row in rows:
        key = (row.shard, row.group)
        samples[key] = samples.get(key, 0.0) + row.samples * _share(row, times)
    each = np.zeros((len(series.shard_sets), groups))
    for number, shards in enumerate(series.shard_sets):
        for (shard, group), count in samples.items():
            if shard in shards:
                each[number, group] += count / max(1, known.get((shard, group), 0))
    expected: F64s = each[series.shards, (series.metric % np.uint64(groups)).astype(np.int64)]
    return expected


def series_ranges(expected: F64s, max_samples: float) -> list[tuple[int, int]]:
    """Divide series into ranges (start, exclusive stop) of about `max_samples` samples, or one series."""
    if not len(expected):
        return []
    number = np.floor((np.cumsum(expected) - expected) / max_samples)
    begins = np.flatnonzero(np.diff(number, prepend=-1.0))
    return list(zip(begins.tolist(), [*begins[1:].tolist(), len(expected)], strict=True))


def _share(row: PinnedRow, times: TimeRange) -> float:
    """The estimated share of a row's samples in a time range."""
    overlap = min(row.greatest_time, times.last) - max(row.least_time, times.first) + 1
    return max(0, overlap) / (row.greatest_time - row.least_time + 1)
