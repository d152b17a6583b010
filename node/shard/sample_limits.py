"""Leaving out samples whose time lies too far from their record's."""

from dataclasses import dataclass, replace

import numpy as np

from strandline.arrays import I64s
from strandline.node.shard.kernels.sample_times import count_outside, keep_inside
from strandline.node.shard.options import SampleLimits
from strandline.wire.columns import Columns

# Farther than any two times can lie apart that a record and its samples have, and small enough to be added to one.
_ANY = 1 << 61


@dataclass(frozen=True, slots=True)
class Kept:
    """The columns without the samples that were left out, and how many those were."""

    columns: Columns
    too_old: int
    too_far_ahead: int


def keep_timely(columns: Columns, record_times: I64s, limits: SampleLimits) -> Kept:
    """Leave out what is too old or too far ahead. Series keep their rows, perhaps without a sample."""
    if limits.behind is None and limits.ahead is None:
        return Kept(columns, 0, 0)
    behind = _ANY if limits.behind is None else limits.behind
    ahead = _ANY if limits.ahead is None else limits.ahead
    rows = (columns.record, columns.first_sample, columns.time)
    old, far = count_outside(*rows, record_times, behind, ahead)
    if old + far == 0:
        return Kept(columns, 0, 0)
    kept = len(columns.time) - old - far
    first = np.empty_like(columns.first_sample)
    time, value = np.empty(kept, dtype=np.int64), np.empty(kept, dtype=np.float64)
    keep_inside(*rows, columns.value, record_times, behind, ahead, first, time, value)
    return Kept(replace(columns, first_sample=first, time=time, value=value), old, far)
