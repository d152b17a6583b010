"""Evaluates a fragment with the result cache: steps that have not changed come from the cache.

A step's result depends on the fragment, the series that are found, and their samples in the window of the step. So a
cached step is used if its window ends before the first sample that may have changed. A series that only one of the two
searches has found counts as a change at its first sample. If this is unknown, the step is evaluated.
"""

from dataclasses import replace
from typing import Protocol

import numpy as np
from pyroaring import BitMap

from strandline.arrays import U32s
from strandline.index.bitmaps import to_bitmap
from strandline.node.query.result_cache import CachedResult, ResultCache
from strandline.node.query.result_keys import result_key
from strandline.node.query.sampling_limits import check_samples
from strandline.node.shard.pinned_read import PinnedRead
from strandline.promql.evaluation.partial_steps import cells_in, join_steps, slice_steps
from strandline.promql.evaluation.partials import Partial
from strandline.promql.plan.fragments import Fragment
from strandline.promql.values import Grid
from strandline.time_range import TimeRange

# With more differing series than this number, and than this fraction (1 / n) of all series, every step is evaluated:
# reading the first samples of the differing series would cost too much.
_MAX_DIFFERING, _MAX_DIFFERING_PART = 100, 4


class Evaluation(Protocol):
    """Evaluates fragments over some series, as of one moment."""

    @property
    def pinned(self) -> PinnedRead:
        """The read of the shard as of that moment."""
        ...

    @property
    def part_ids(self) -> U32s:
        """The series."""
        ...

    @property
    def lacks_keys(self) -> bool:
        """Whether a series was left out because its key was purged meanwhile."""
        ...

    def evaluate(self, fragment: Fragment) -> Partial:
        """The partial result of a fragment within the pinned times."""
        ...

    def first_sample(self, part_ids: BitMap, times: TimeRange) -> int:
        """The time of the first sample of these series in a part of the pinned times; a later time if they have none,
        and the beginning if it is unknown.
        """
        ...


def evaluate_uncached_steps(
    evaluation: Evaluation, fragment: Fragment, max_samples: int, cache: ResultCache
) -> Partial:
    """The partial result of a fragment. Only steps that the cache does not have are evaluated."""
    key = result_key(fragment, max_samples) if cache.is_on else None
    if key is None:
        return evaluation.evaluate(fragment)
    series, steps = to_bitmap(np.sort(evaluation.part_ids)), fragment.ends.count
    known = cache.get(key)
    cached = _unchanged_steps(evaluation, fragment, known, series) if known is not None else 0
    cache.count(cached, steps)
    if known is None or not cached:
        partial = evaluation.evaluate(fragment)
    else:
        first = (fragment.ends.start - known.ends.start) // fragment.ends.step
        if cached == steps:
            partial = slice_steps(fragment, known.partial, first)
        else:
            partial = join_steps(fragment, known.partial, first, evaluation.evaluate(_steps_from(fragment, cached)))
        check_samples(cells_in(partial), max_samples)
    if not evaluation.lacks_keys:
        cache.put(key, CachedResult(fragment.ends, partial, series, evaluation.pinned.content))
    return partial


def _unchanged_steps(evaluation: Evaluation, fragment: Fragment, known: CachedResult, series: BitMap) -> int:
    """How many steps, from the first on, have not changed."""
    ends = fragment.ends
    if ends.start < known.ends.start:
        return 0
    until = min(evaluation.pinned.unchanged_before(known.content), known.ends.end + 1)
    cached = _steps_before(ends, until)
    differing = series ^ known.series
    if not cached or not differing:
        return cached
    if len(differing) > max(_MAX_DIFFERING, len(series) // _MAX_DIFFERING_PART):
        return 0
    windows = TimeRange(fragment.first, ends.start + (cached - 1) * ends.step)
    return min(cached, _steps_before(ends, evaluation.first_sample(differing, windows)))


def _steps_before(ends: Grid, time: int) -> int:
    """How many windows end before a time."""
    return min(ends.count, max(0, (time - 1 - ends.start) // ends.step + 1))


def _steps_from(fragment: Fragment, first: int) -> Fragment:
    """The fragment from step `first` on."""
    ends, times = fragment.ends, fragment.times
    remaining = ends.count - first
    return replace(
        fragment,
        ends=Grid(ends.start + first * ends.step, ends.step, remaining),
        times=Grid(times.start + first * times.step, times.step, remaining),
    )
