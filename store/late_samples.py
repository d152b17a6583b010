"""Samples that came late, counted by hour: at most 64 counts a row, however many hours a backfill covers.

Past 64 hours the newest 32 are told apart, and the older ones are counted in ranges: at most 32, of an equal power of
two of hours, each beginning at a multiple of that. So the ranges follow from the hours alone: it does not matter in
which order, or in how many parts, samples were counted, and a replay tells the same as a shard.
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
    """The samples of hours that counted as complete with an earlier bucket: how many of each such hour.

    An hour is complete with the bucket that holds its last millisecond: so those are late whose hours ended before the
    bucket's time began, or just then.
    """
    hours = times // HOUR
    late = hours < first_hour_on_time(bucket, flush_interval)
    if not late.any():
        return ()
    return _counts(*np.unique(hours[late], return_counts=True))


def first_hour_on_time(bucket: int, flush_interval: int) -> int:
    """The first hour of which samples in a bucket are not late."""
    return bucket * flush_interval // HOUR


def merged_late(counts: Iterable[LateSamples]) -> tuple[LateSamples, ...]:
    """Counts that were made apart, as one would have been made of all samples."""
    hours: Counter[int] = Counter()
    ranges: list[LateSamples] = []
    for one in counts:
        if one.hours == 1:
            hours[one.hour] += one.samples
        else:
            ranges.append(one)
    told = sorted(hours)
    return _counts(
        np.array(told, dtype=np.int64), np.array([hours[hour] for hour in told], dtype=np.int64), tuple(ranges)
    )


def _counts(hours: I64s, samples: I64s, ranges: tuple[LateSamples, ...] = ()) -> tuple[LateSamples, ...]:
    """`hours` rise. Ranges are of hours below the newest ones, of which there were too many."""
    if not ranges and len(hours) <= MAX_COUNTS:
        return _single(hours, samples)
    older = max(0, len(hours) - _NEWEST_HOURS)
    first = np.concatenate([np.array([one.hour for one in ranges], dtype=np.int64), hours[:older]])
    counted = np.concatenate([np.array([one.samples for one in ranges], dtype=np.int64), samples[:older]])
    # A power of two of hours: what was counted in ranges before can't be told apart any more.
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
