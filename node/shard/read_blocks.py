"""Which series are read together: blocks whose samples fit into memory."""

from collections.abc import Sequence

import numpy as np

from strandline.arrays import F64s, Rows
from strandline.store.rows import GroupRow
from strandline.store.selecting import WantedSeries
from strandline.time_range import TimeRange, overlap_fraction


def samples_per_series(rows: Sequence[GroupRow], groups: int, times: TimeRange) -> F64s:
    """About how many samples a series of each group has in some rows of the manifest and a range of times."""
    each = np.zeros(groups, dtype=np.float64)
    for row in rows:
        if row.series and row.least_time is not None and row.greatest_time is not None:
            share = overlap_fraction(times, TimeRange(row.least_time, row.greatest_time))
            each[row.group] += row.samples / row.series * share
    return each


def cut_blocks(wanted: WantedSeries, groups: int, samples_each: F64s, most_samples: int) -> list[WantedSeries]:
    """Series in blocks that have about so many samples at most, if a series of group g has `samples_each[g]`; a block
    has at least one series. Each series is in one block.

    A block has whole groups, or a part of one group: rows and pages are read group by group, and would otherwise be
    read for several blocks.
    """
    if not len(wanted):
        return []
    # Also what has no samples takes memory.
    expected = np.maximum(samples_each, 1.0)
    group = (wanted.metric % np.uint64(groups)).astype(np.int64)
    by_group = np.argsort(group, kind="stable")
    numbers, starts = np.unique(group[by_group], return_index=True)
    blocks: list[Rows] = []
    gathered: list[Rows] = []
    left = float(most_samples)
    for number, places in zip(numbers.tolist(), np.split(by_group, starts[1:]), strict=True):
        samples = len(places) * float(expected[number])
        if gathered and samples > left:
            blocks.append(np.concatenate(gathered))
            gathered, left = [], float(most_samples)
        if samples > most_samples:
            series = max(1, int(most_samples / expected[number]))
            blocks += np.array_split(places, -(-len(places) // series))
        else:
            gathered.append(places)
            left -= samples
    if gathered:
        blocks.append(np.concatenate(gathered))
    return [wanted.take(np.sort(places)) for places in blocks]
