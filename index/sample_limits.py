"""Drops samples whose time is too far from their record's.

Records whose producer has checked the times are exempt: their samples were acknowledged, and the record's time is that
of a broker, whose clock may be wrong. Records without a time are exempt too, because there is nothing to compare with.

The minimum and maximum 64-bit numbers are never valid times: in the index they mean that a key is absent or live.
"""

from dataclasses import dataclass, replace

import numpy as np

from strandline.arrays import Bools, I64s
from strandline.index.kernels.sample_times import count_outside, keep_inside
from strandline.index.part_columns import ABSENT, LIVE
from strandline.time_range import TimeRange
from strandline.wire.columns import Columns

_MIN_TIME, _MAX_TIME = ABSENT + 1, LIVE - 1


@dataclass(frozen=True, slots=True)
class SampleLimits:
    """How far a sample's time may be from its record's; None for no limit.

    Readers compare with the record's time and never with the clock, so that a replay accepts what live ingestion
    accepted.
    """

    behind: int | None
    ahead: int | None

    def times_in(self, record_time: int) -> TimeRange:
        """The valid times of samples of a record with this time."""
        least = max(_MIN_TIME, record_time - self.behind) if self.behind is not None else _MIN_TIME
        greatest = min(_MAX_TIME, record_time + self.ahead) if self.ahead is not None else _MAX_TIME
        return TimeRange(least, greatest)


@dataclass(frozen=True, slots=True)
class Kept:
    """The columns without the dropped samples, and the numbers of those."""

    columns: Columns
    too_old: int
    too_far_ahead: int


def keep_timely(columns: Columns, record_times: I64s, times_checked: Bools, limits: SampleLimits) -> Kept:
    """Drop samples that are too old or too far ahead. Series keep their rows, possibly without samples.

    `times_checked` states for each record whether its producer has checked the times; a record without a time has a
    negative one.
    """
    is_exempt = times_checked | (record_times < 0)
    bounds = (
        np.where(is_exempt, _MIN_TIME, _min_times(record_times, limits.behind)),
        np.where(is_exempt, _MAX_TIME, _max_times(record_times, limits.ahead)),
    )
    rows = (columns.record, columns.first_sample, columns.time)
    old, far = count_outside(*rows, *bounds)
    if old + far == 0:
        return Kept(columns, 0, 0)
    kept = len(columns.time) - old - far
    first = np.empty_like(columns.first_sample)
    time, value = np.empty(kept, dtype=np.int64), np.empty(kept, dtype=np.float64)
    keep_inside(*rows, columns.value, *bounds, first, time, value)
    return Kept(replace(columns, first_sample=first, time=time, value=value), old, far)


def _min_times(record_times: I64s, behind: int | None) -> I64s:
    """The minimum valid sample time of each record, at least the minimum of all times."""
    if behind is None or behind > _MAX_TIME:
        return np.full_like(record_times, _MIN_TIME)
    return np.maximum(record_times, _MIN_TIME + behind) - behind


def _max_times(record_times: I64s, ahead: int | None) -> I64s:
    if ahead is None or ahead > _MAX_TIME:
        return np.full_like(record_times, _MAX_TIME)
    return np.minimum(record_times, _MAX_TIME - ahead) + ahead
