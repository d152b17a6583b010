"""Several runs as one: of segments, of buckets, of the blocks of a write buffer."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from strandline.store.kernels.merging import merge_two
from strandline.store.series_run import SeriesRun


def merge_runs(runs: Sequence[SeriesRun]) -> SeriesRun:
    """All series and samples of some runs. Where two have a sample of one series at one time, the later run wins.

    What is given is left as it is; a run that is alone comes back itself.
    """
    left = [run for run in runs if len(run)]
    if not left:
        return SeriesRun.empty()
    # Only neighbours are merged, so the later run stays the later one.
    while len(left) > 1:
        left = [_merge(left[at : at + 2]) for at in range(0, len(left), 2)]
    return left[0]


def joined_runs(runs: Sequence[SeriesRun]) -> SeriesRun:
    """Runs that follow each other in the order of their series, as one. The last series of a run may go on in the next
    one, at later times: so do the segments of a group.
    """
    left = [run for run in runs if len(run)]
    if len(left) <= 1:
        return left[0] if left else SeriesRun.empty()
    metric, high, low = (
        np.concatenate([getattr(run, name) for run in left]) for name in ("metric", "key_high", "key_low")
    )
    before = np.cumsum([0, *(run.samples for run in left)])
    first = np.concatenate([run.first_sample[:-1] + start for run, start in zip(left, before, strict=False)])
    new = np.ones(len(metric), dtype=np.bool_)
    new[1:] = (metric[1:] != metric[:-1]) | (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    return SeriesRun(
        metric[new],
        high[new],
        low[new],
        np.append(first[new], before[-1]),
        np.concatenate([run.time for run in left]),
        np.concatenate([run.value for run in left]),
    )


def _merge(pair: list[SeriesRun]) -> SeriesRun:
    if len(pair) == 1:
        return pair[0]
    old, new = pair
    series, samples = len(old) + len(new), old.samples + new.samples
    metric, key_high, key_low = (np.empty(series, dtype=np.uint64) for _ in range(3))
    first, time = np.empty(series + 1, dtype=np.int64), np.empty(samples, dtype=np.int64)
    value = np.empty(samples, dtype=np.float64)
    series, samples = merge_two(
        (old.metric, old.key_high, old.key_low),
        old.first_sample,
        old.time,
        old.value,
        (new.metric, new.key_high, new.key_low),
        new.first_sample,
        new.time,
        new.value,
        (metric, key_high, key_low),
        first,
        time,
        value,
    )
    for column, length in (
        (metric, series),
        (key_high, series),
        (key_low, series),
        (first, series + 1),
        (time, samples),
        (value, samples),
    ):
        _shorten(column, length)
    return SeriesRun(metric, key_high, key_low, first, time, value)


def _shorten(column: npt.NDArray[Any], length: int) -> None:
    """In place, so that memory for samples that were there twice is given back. Nobody else has the column yet."""
    column.resize(length, refcheck=False)
