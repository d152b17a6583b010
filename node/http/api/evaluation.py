"""The points of a selector, by Prometheus' rules of lookback and staleness.

A point at t has the value of the newest sample in (t - lookback, t], unless that sample says that the series ended. A
range at t has the samples in (t - range, t] that don't say so. The earlier end does not count, as in Prometheus from
version 3 on; version 2 took a sample exactly at it.
"""

from dataclasses import dataclass, replace

import numpy as np

from strandline.arrays import I64s, U64s
from strandline.index.key_bytes import KeyBytes, take_keys
from strandline.node.http.api.expressions import Selection
from strandline.node.http.api.kernels.points import STALE, count_points, count_samples, fill_points
from strandline.node.http.api.pieces import Points, settled
from strandline.node.query.answers import SamplesAnswer
from strandline.node.query.queries import QueryTooLarge
from strandline.time_range import TimeRange


@dataclass(frozen=True, slots=True)
class Steps:
    """Moments at which values are wanted: `count` of them, `step` apart, from `start` on, in milliseconds."""

    start: int
    step: int
    count: int

    @property
    def end(self) -> int:
        """The last one."""
        return self.start + (self.count - 1) * self.step

    @classmethod
    def at(cls, moment: int) -> "Steps":
        """One alone."""
        return cls(moment, 1, 1)


def samples_wanted(selection: Selection, steps: Steps, lookback: int) -> TimeRange:
    """The samples that may count at any of the steps."""
    back = lookback if selection.span is None else selection.span
    first = selection.moment(steps.start, steps.start, steps.end)
    last = selection.moment(steps.end, steps.start, steps.end)
    return TimeRange(first - back + 1, last)


class PointsPlan:
    """The points of a selector at each step, counted: what they take is known before they are made."""

    def __init__(self, selection: Selection, steps: Steps, lookback: int, samples: SamplesAnswer) -> None:
        self._steps, self._is_pinned = steps, selection.at is not None
        samples, bits = _settled(samples)
        self._keys = samples.keys
        self._looked_at = selection.moment(steps.start, steps.start, steps.end)
        # As of one moment, every step has the same value.
        looks = 1 if self._is_pinned else steps.count
        self._arguments = (
            samples.first_sample,
            samples.time,
            bits,
            self._looked_at,
            steps.step,
            looks,
            lookback,
        )
        self._counts = np.zeros(len(samples.keys), dtype=np.int64)
        count_points(*self._arguments, self._counts)
        self.points = int(self._counts.sum()) * (steps.count if self._is_pinned else 1)
        """How many there are."""

    @property
    def nbytes(self) -> int:
        """What they will take in memory, beside the samples that they are made from."""
        return 16 * self.points

    def check(self, most: int) -> None:
        """Raises `QueryTooLarge` if there are more than `most`."""
        if self.points > most:
            raise QueryTooLarge(
                f"the answer would have {self.points} points, more than the {most} that a query may have",
                remedy="Ask for fewer series or a longer step, or raise query.max_samples",
            )

    def make(self) -> Points:
        """The points; series without one are left out."""
        steps, counts = self._steps, self._counts
        time, values = np.empty(int(counts.sum()), dtype=np.int64), np.empty(int(counts.sum()), dtype=np.uint64)
        fill_points(*self._arguments, steps.start - self._looked_at, time, values)
        if self._is_pinned:
            counts = counts * steps.count
            time = np.tile(steps.start + steps.step * np.arange(steps.count, dtype=np.int64), len(values))
            values = np.repeat(values, steps.count)
        return _without_empty(self._keys, counts, time, values)


def samples_of_range(samples: SamplesAnswer) -> Points:
    """The samples themselves; series without one are left out."""
    samples, bits = _settled(samples)
    counts = np.zeros(len(samples.keys), dtype=np.int64)
    count_samples(samples.first_sample, bits, counts)
    if int(counts.sum()) == len(bits):
        return _without_empty(samples.keys, counts, samples.time, bits)
    real = bits != STALE
    return _without_empty(samples.keys, counts, samples.time[real], bits[real])


def _settled(samples: SamplesAnswer) -> tuple[SamplesAnswer, U64s]:
    """In arrays of the ordinary kind, and the bits of the values."""
    value = settled(samples.value)
    first_sample, time = settled(samples.first_sample), settled(samples.time)
    return replace(samples, first_sample=first_sample, time=time, value=value), value.view(np.uint64)


def _without_empty(keys: KeyBytes, counts: I64s, time: I64s, bits: U64s) -> Points:
    there = np.flatnonzero(counts)
    if len(there) < len(counts):
        keys, counts = take_keys(keys, there), counts[there]
    first_point = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=first_point[1:])
    return Points(keys, first_point, time, bits)
