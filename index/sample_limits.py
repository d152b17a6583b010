"""Leaving out samples whose time lies too far from their record's.

Of a record whose producer has checked the times nothing is left out: the samples were acknowledged, and the record's
time is that of a broker, whose clock may be wrong. Nor of a record without a time: there is nothing to compare with.

Whatever the limits, the least and the greatest number of 64 bits are no times: the index means by them that a key is
absent or live, and a key that ended there would be neither.
"""

from dataclasses import dataclass, replace

import numpy as np

from strandline.arrays import Bools, I64s
from strandline.index.kernels.sample_times import count_outside, keep_inside
from strandline.index.part_columns import ABSENT, LIVE
from strandline.time_range import TimeRange
from strandline.wire.columns import Columns

_LEAST, _GREATEST = ABSENT + 1, LIVE - 1


@dataclass(frozen=True, slots=True)
class SampleLimits:
    """How far a sample's time may lie from the time of its record; None for as far as it likes.

    A reader compares with the record and never with the clock, so that a replay takes what live ingestion took.
    """

    behind: int | None
    ahead: int | None

    def times_in(self, record_time: int) -> TimeRange:
        """The times that samples of a record of this time may have."""
        least = max(_LEAST, record_time - self.behind) if self.behind is not None else _LEAST
        greatest = min(_GREATEST, record_time + self.ahead) if self.ahead is not None else _GREATEST
        return TimeRange(least, greatest)


@dataclass(frozen=True, slots=True)
class Kept:
    """The columns without the samples that were left out, and how many those were."""

    columns: Columns
    too_old: int
    too_far_ahead: int


def keep_timely(columns: Columns, record_times: I64s, times_checked: Bools, limits: SampleLimits) -> Kept:
    """Leave out what is too old or too far ahead. Series keep their rows, perhaps without a sample.

    `times_checked` says of each record whether its producer has checked the times; a record without a time has a
    negative one.
    """
    is_exempt = times_checked | (record_times < 0)
    bounds = (
        np.where(is_exempt, _LEAST, _least_times(record_times, limits.behind)),
        np.where(is_exempt, _GREATEST, _greatest_times(record_times, limits.ahead)),
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


def _least_times(record_times: I64s, behind: int | None) -> I64s:
    """The least time that a sample of each record may have: what would lie before all times is the first of them."""
    if behind is None or behind > _GREATEST:
        return np.full_like(record_times, _LEAST)
    return np.maximum(record_times, _LEAST + behind) - behind


def _greatest_times(record_times: I64s, ahead: int | None) -> I64s:
    if ahead is None or ahead > _GREATEST:
        return np.full_like(record_times, _GREATEST)
    return np.minimum(record_times, _GREATEST - ahead) + ahead
