"""Dividing a job's series into units of about the same number of samples, by what a few of its records hold.

All of it is decided before the first task of a wave runs, so that tasks which are run again agree with those before.
Within a metric series are divided by their hashes: one metric with all the samples is no obstacle.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from strandline.arrays import F64s, U64s
from strandline.recovery.replay.replay_input import SeriesBound
from strandline.wire.columns import Columns

# A job gets as many units as its result's rows can be numbered for; units grow beyond that.
MAX_UNITS = 1 << 14
# What a series weighs whose samples are not kept, by samples that are: its summary has to be made all the same.
_UNKEPT_WEIGHT = 1 / 16


@dataclass(frozen=True, slots=True)
class SampledSeries:
    """Series of some of a job's records, in any order and perhaps several times, and how many samples each has there.

    `scale` is how many of the job's samples each of these stands for.
    """

    metric: U64s
    key_high: U64s
    key_low: U64s
    samples: F64s
    scale: float

    @classmethod
    def of(cls, columns: Columns, *, records: int, sampled: int) -> "SampledSeries":
        """The series of decoded records: so many were sampled of so many."""
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
    """The bounds between a job's units: none for a small one. The same sample gives the same bounds.

    Only the groups in `kept` have their samples kept. A series is never divided.
    """
    group = sample.metric % np.uint64(groups)
    is_kept = np.isin(group, np.array(sorted(kept), dtype=np.uint64))
    weight = sample.samples * np.where(is_kept, 1.0, _UNKEPT_WEIGHT if wants_keys else 0.0)
    total = float(weight.sum()) * sample.scale
    units = min(MAX_UNITS, -int(-total // unit_samples))
    if units < 2:
        return ()
    order = np.lexsort((sample.key_low, sample.key_high, sample.metric, group))
    heaped = np.cumsum(weight[order])
    # The series with which a unit has what it should have is the first of the next one.
    places = np.searchsorted(heaped, heaped[-1] * np.arange(1, units) / units)
    bounds = [
        SeriesBound(int(group[row]), int(sample.metric[row]), int(sample.key_high[row]), int(sample.key_low[row]))
        for row in order[np.unique(places)].tolist()
    ]
    return tuple(bounds[:1] + [bound for before, bound in pairwise(bounds) if bound != before])


def positions_of_bounds(
    bounds: Sequence[SeriesBound], group: U64s, metric: U64s, key_high: U64s, key_low: U64s
) -> list[int]:
    """Where each bound lies among series that stand in the order of (group, metric, key)."""
    places = []
    for bound in bounds:
        low, high = 0, len(group)
        for column, word in (
            (group, bound.group),
            (metric, bound.metric),
            (key_high, bound.key_high),
            (key_low, bound.key_low),
        ):
            # Within what agrees so far the next column rises.
            some = column[low:high]
            wanted = np.uint64(word)
            low, high = (
                low + int(np.searchsorted(some, wanted)),
                low + int(np.searchsorted(some, wanted, side="right")),
            )
        places.append(low)
    return places
