"""Divides series into blocks whose samples fit into memory."""

from collections.abc import Sequence

import numpy as np

from strandline.arrays import F64s, Rows
from strandline.store.rows import GroupRow
from strandline.store.selecting import WantedSeries
from strandline.time_range import TimeRange, overlap_fraction


def samples_per_series(rows: Sequence[GroupRow], groups: int, times: TimeRange) -> F64s:
    """The estimated samples per series of each group, in some manifest rows and a time range."""
    each = np.zeros(groups, dtype=np.float64)
    for row in rows:
        if row.series and row.least_time is not None and row.greatest_time is not None:
            share = overlap_fraction(times, TimeRange(row.least_time, row.greatest_time))
            each[row.group] += row.samples / row.series * share
    return each


def cut_blocks(wanted: WantedSeries, groups: int, samples_each: F64s, max_samples: int) -> list[WantedSeries]:
    """Divide series into blocks of at most about `max_samples` samples, if a series of group g has `samples_each[g]`. A
    block has at least one series.

    A block consists of complete groups or of a part of one group: rows and pages are read by group, and would otherwise
    be read for several blocks.
    """
    if not len(wanted):
        return []
    # Series without samples also take memory.
    expected = np.maximum(samples_each, 1.0)
    group = (wanted.metric % np.uint64(groups)).astype(np.int64)
    by_group = np.argsort(group, kind="stable")
    numbers, starts = np.unique(group[by_group], return_index=True)
    blocks: list[Rows] = []
    block: list[Rows] = []
    left = float(max_samples)
    for number, rows in zip(numbers.tolist(), np.split(by_group, starts[1:]), strict=True):
        samples = len(rows) * float(expected[number])
        if block and samples > left:
            blocks.append(np.concatenate(block))
            block, left = [], float(max_samples)
        if samples > max_samples:
            series = max(1, int(max_samples / expected[number]))
            blocks += np.array_split(rows, -(-len(rows) // series))
        else:
            block.append(rows)
            left -= samples
    if block:
        blocks.append(np.concatenate(block))
    return [wanted.take(np.sort(rows)) for rows in blocks]
