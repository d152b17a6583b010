"""Divides a job's series into units of about the same number of samples, based on a few of its records.

The division is fixed before the first task of a wave runs, so that repeated tasks use the same one. Within a metric,
series are divided by their hashes, so a single metric with all samples can be divided too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from strandline.arrays import F64s, U64s
from strandline.recovery.replay.replay_input import SeriesBound
from strandline.wire.columns import Columns

# The row numbers of a result allow this many units. Larger jobs get larger units.
MAX_UNITS = 1 << 14
# The weight of a sample that is not kept, relative to one that is: its series still needs a summary.
_UNKEPT_WEIGHT = 1 / 16


@dataclass(frozen=True, slots=True)
class SampledSeries:
    """Series in some of a job's records, in any order and perhaps repeated, with their numbers of samples there.

    `scale` is how many of the job's samples each of these represents.
    """

    metric: U64s
    key_high: U64s
    key_low: U64s
    samples: F64s
    scale: float

    @classmethod
    def of(cls, columns: Columns, *, records: int, sampled: int) -> "SampledSeries":
        """The series of decoded records, of which `sampled` were read out of `records`."""
        return cls(
            columns.metric,
            columns.key_high,
            columns.key_low,
            np.diff(columns.first_sample).astype(np.float64),
            records / sampled if sampled else 0.0,
        )


def unit_bounds(
    sample: SampledSeries, *, groups: int, kept: frozenset[int], wants_keys: bool, unit_samples: int
) -> tuple[SeriesBound, ...]:
    """The bounds between a job's units; none for a small job. The same sample gives the same bounds.

    Only samples of the groups in `kept` are kept. A series is never divided.
    """
    group = sample.metric % np.uint64(groups)
    is_kept = np.isin(group, np.array(sorted(kept), dtype=np.uint64))
    weight = sample.samples * np.where(is_kept, 1.0, _UNKEPT_WEIGHT if wants_keys else 0.0)
    total = float(weight.sum()) * sample.scale
    units = min(MAX_UNITS, -int(-total // unit_samples))
    if units < 2:
        return ()
    order = np.lexsort((sample.key_low, sample.key_high, sample.metric, group))
    cumulative = np.cumsum(weight[order])
    # The series that completes a unit is the first one of the next unit.
    positions = np.searchsorted(cumulative, cumulative[-1] * np.arange(1, units) / units)
    bounds = [
        SeriesBound(int(group[row]), int(sample.metric[row]), int(sample.key_high[row]), int(sample.key_low[row]))
        for row in order[np.unique(positions)].tolist()
    ]
    return tuple(bounds[:1] + [bound for before, bound in pairwise(bounds) if bound != before])


def positions_of_bounds(
    bounds: Sequence[SeriesBound], group: U64s, metric: U64s, key_high: U64s, key_low: U64s
) -> list[int]:
    """The position of each bound among series in the order of (group, metric, key)."""
    positions = []
    for bound in bounds:
        low, high = 0, len(group)
        for column, word in (
            (group, bound.group),
            (metric, bound.metric),
            (key_high, bound.key_high),
            (key_low, bound.key_low),
        ):
            # Within equal values of the columns before, the next column is ascending.
            some = column[low:high]
            wanted = np.uint64(word)
            low, high = (
                low + int(np.searchsorted(some, wanted)),
                low + int(np.searchsorted(some, wanted, side="right")),
            )
        positions.append(low)
    return positions
