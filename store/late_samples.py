"""Counts of late samples by hour: at most 64 counts per row, however many hours a backfill covers.

Beyond 64 hours, the newest 32 are counted separately and the older ones in at most 32 ranges. All ranges have the same
length, a power of two hours, and start at a multiple of it. So the ranges depend only on the hours, not on the order or
the parts in which samples were counted, and a replay counts as a shard does.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import numpy as np

from strandline.arrays import I64s
from strandline.store.rows import LateSamples

HOUR: Final = 3_600_000
MAX_COUNTS: Final = 64
_NEWEST_HOURS: Final = 32
_MAX_RANGES: Final = MAX_COUNTS - _NEWEST_HOURS


def late_samples(times: I64s, bucket: int, flush_interval: int) -> tuple[LateSamples, ...]:
    """Count the samples of each hour that was already complete with an earlier bucket.

    An hour is complete with the bucket that contains its last millisecond, so samples of hours that ended at or before
    the bucket's start are late.
    """
    hours = times // HOUR
    late = hours < first_hour_on_time(bucket, flush_interval)
    if not late.any():
        return ()
    return _counts(*np.unique(hours[late], return_counts=True))


def first_hour_on_time(bucket: int, flush_interval: int) -> int:
    """Return the first hour whose samples are not late in a bucket."""
    return bucket * flush_interval // HOUR


def merged_late(counts: Iterable[LateSamples]) -> tuple[LateSamples, ...]:
    """Merge counts that were made separately into those that counting all samples together would have given."""
    hours: Counter[int] = Counter()
    ranges: list[LateSamples] = []
    for one in counts:
        if one.hours == 1:
            hours[one.hour] += one.samples
        else:
            ranges.append(one)
    distinct = sorted(hours)
    return _counts(
        np.array(distinct, dtype=np.int64), np.array([hours[hour] for hour in distinct], dtype=np.int64), tuple(ranges)
    )


def _counts(hours: I64s, samples: I64s, ranges: tuple[LateSamples, ...] = ()) -> tuple[LateSamples, ...]:
    """`hours` are sorted. `ranges`, if there are any, lie below the newest hours."""
    if not ranges and len(hours) <= MAX_COUNTS:
        return _single(hours, samples)
    older = max(0, len(hours) - _NEWEST_HOURS)
    first = np.concatenate([np.array([one.hour for one in ranges], dtype=np.int64), hours[:older]])
    counted = np.concatenate([np.array([one.samples for one in ranges], dtype=np.int64), samples[:older]])
    # The length in hours is a power of two. Ranges that were merged before can't be divided again.
    shift = max((one.hours.bit_length() - 1 for one in ranges), default=1)
    while len(np.unique(first >> shift)) > _MAX_RANGES:
        shift += 1
    blocks, of_block = np.unique(first >> shift, return_inverse=True)
    sums = np.zeros(len(blocks), dtype=np.int64)
    np.add.at(sums, of_block, counted)
    coarse = zip((blocks << shift).tolist(), sums.tolist(), strict=True)
    return (
        *(LateSamples(hour, count, hours=1 << shift) for hour, count in coarse),
        *_single(hours[older:], samples[older:]),
    )


def _single(hours: I64s, samples: I64s) -> tuple[LateSamples, ...]:
    return tuple(LateSamples(hour, count) for hour, count in zip(hours.tolist(), samples.tolist(), strict=True))
