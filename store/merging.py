"""Merges runs: of segments, of buckets, of the blocks of a write buffer."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from strandline.arrays import I64s, run_lengths
from strandline.store.kernels.merging import copy_pieces, locate_pieces, merge_overlapping, order_pieces
from strandline.store.series_run import SeriesRun


def merge_runs(runs: Sequence[SeriesRun]) -> SeriesRun:
    """Merge runs into one with all series and samples. If two runs have a sample of the same series and time, the later
    run's sample is kept.

    The inputs are not modified; a single non-empty run is returned itself. A sample is copied once, however many runs
    there are, unless the pieces of its series overlap in time.
    """
    left = [run for run in runs if len(run)]
    if len(left) <= 1:
        return left[0] if left else SeriesRun.empty()
    metric, high, low = (
        np.concatenate([getattr(run, name) for run in left]) for name in ("metric", "key_high", "key_low")
    )
    counts = np.concatenate([run_lengths(run.first_sample) for run in left])
    least = np.concatenate([run.time[run.first_sample[:-1]] for run in left])
    greatest = np.concatenate([run.time[run.first_sample[1:] - 1] for run in left])
    run_first = _offsets([len(run) for run in left])
    order = order_pieces(metric, high, low, run_first)
    position, first_piece, first_sample = (np.empty(len(order) + more, dtype=np.int64) for more in (0, 1, 1))
    overlaps = np.empty(len(order), dtype=np.bool_)
    series = locate_pieces(
        metric, high, low, order, counts, least, greatest, position, first_piece, first_sample, overlaps
    )
    _shorten(first_sample, series + 1)
    samples = int(first_sample[-1])
    time, value = np.empty(samples, dtype=np.int64), np.empty(samples, dtype=np.float64)
    for run, start in zip(left, run_first.tolist(), strict=False):
        copy_pieces(run.first_sample, run.time, run.value, position[start : start + len(run)], time, value)
    if overlaps[:series].any():
        remaining = merge_overlapping(order, counts, first_piece[: series + 1], first_sample, overlaps, time, value)
        for column in (time, value):
            _shorten(column, remaining)
    leading = order[first_piece[:series]]
    return SeriesRun(metric[leading], high[leading], low[leading], first_sample, time, value)


def _offsets(lengths: Sequence[int]) -> I64s:
    return np.cumsum([0, *lengths], dtype=np.int64)


def _shorten(column: npt.NDArray[Any], length: int) -> None:
    """Shorten a column in place, which frees the memory of samples that were duplicates. There must be no other
    reference to it.
    """
    column.resize(length, refcheck=False)
