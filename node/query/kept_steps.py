"""The result of a fragment, of which some steps may have been kept from an earlier time.

A step's result depends on three things: the fragment, the series that are found, and their samples in the window of the
step. So a step that was kept is taken if its window ends before the first sample that may have changed since. A series
that only one of both searches has found counts as a change at its first sample. What can't be told is evaluated anew.
"""

from dataclasses import replace
from typing import Protocol

import numpy as np
from pyroaring import BitMap

from strandline.arrays import U32s
from strandline.index.bitmaps import to_bitmap
from strandline.node.query.result_cache import KeptResult, ResultCache
from strandline.node.query.result_keys import result_key
from strandline.node.query.sampling_limits import check_samples
from strandline.node.shard.pinned_read import PinnedRead
from strandline.promql.evaluation.partial_steps import cells_in, join_steps, slice_steps
from strandline.promql.evaluation.partials import Partial
from strandline.promql.plan.fragments import Fragment
from strandline.promql.values import Grid
from strandline.time_range import TimeRange

# If more series than this, and more than such a part of all, are others, everything is evaluated: to look for the first
# sample of so many would cost too much.
_FEW_OTHERS, _MOST_OTHERS = 100, 4


class Evaluation(Protocol):
    """Evaluates fragments over some series at one moment."""

    @property
    def pinned(self) -> PinnedRead:
        """The moment."""
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
        """The time of the first sample that any of some series has in a part of the pinned times; behind it if there is
        none, and its beginning if that can't be told.
        """
        ...


def evaluate_rest(evaluation: Evaluation, fragment: Fragment, max_samples: int, cache: ResultCache) -> Partial:
    """The partial result of a fragment, of which only the steps are evaluated that are not in the cache."""
    key = result_key(fragment, max_samples) if cache.is_on else None
    if key is None:
        return evaluation.evaluate(fragment)
    series, steps = to_bitmap(np.sort(evaluation.part_ids)), fragment.ends.count
    known = cache.find(key)
    kept = _unchanged_steps(evaluation, fragment, known, series) if known is not None else 0
    cache.count(kept, steps)
    if known is None or not kept:
        partial = evaluation.evaluate(fragment)
    else:
        first = (fragment.ends.start - known.ends.start) // fragment.ends.step
        if kept == steps:
            partial = slice_steps(fragment, known.partial, first)
        else:
            partial = join_steps(fragment, known.partial, first, evaluation.evaluate(_steps_from(fragment, kept)))
        check_samples(cells_in(partial), max_samples)
    if not evaluation.lacks_keys:
        cache.keep(key, KeptResult(fragment.ends, partial, series, evaluation.pinned.content))
    return partial


def _unchanged_steps(evaluation: Evaluation, fragment: Fragment, known: KeptResult, series: BitMap) -> int:
    """How many steps, from the first one on, are what they were."""
    ends = fragment.ends
    if ends.start < known.ends.start:
        return 0
    until = min(evaluation.pinned.unchanged_before(known.content), known.ends.end + 1)
    kept = _steps_before(ends, until)
    others = series ^ known.series
    if not kept or not others:
        return kept
    if len(others) > max(_FEW_OTHERS, len(series) // _MOST_OTHERS):
        return 0
    windows = TimeRange(fragment.first, ends.start + (kept - 1) * ends.step)
    return min(kept, _steps_before(ends, evaluation.first_sample(others, windows)))


def _steps_before(ends: Grid, time: int) -> int:
    """At how many ends nothing from a time on counts."""
    return min(ends.count, max(0, (time - 1 - ends.start) // ends.step + 1))


def _steps_from(fragment: Fragment, first: int) -> Fragment:
    """The fragment at its later steps."""
    ends, times = fragment.ends, fragment.times
    left = ends.count - first
    return replace(
        fragment,
        ends=Grid(ends.start + first * ends.step, ends.step, left),
        times=Grid(times.start + first * times.step, times.step, left),
    )
