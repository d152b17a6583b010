"""Divides a bulk read into tasks of about equal size: windows of complete days, and ranges of series. Pure."""

import numpy as np

from strandline.jobs.reading.pins import Pins
from strandline.jobs.reading.resolving import ResolvedSeries
from strandline.jobs.reading.series_task import SeriesTask, expected_samples, rows_of, series_ranges
from strandline.time_range import TimeRange

TASK_SAMPLES = 4_000_000
_DAY_MS = 86_400_000


def divide_into_tasks(
    pins: Pins, resolved: ResolvedSeries, times: TimeRange, task_samples: int = TASK_SAMPLES
) -> list[SeriesTask]:
    """Tasks that together read every sample of the resolved series in a time range once. Series are ordered by group,
    so that few tasks read the same rows.
    """
    tasks: list[SeriesTask] = []
    series = resolved.series
    total = float(expected_samples(series, pins.groups, pins.rows, times, resolved.known).sum())
    for window in _windows(times, total, task_samples):
        of_window = series.within(window.first, window.last)
        rows = rows_of(of_window, pins.groups, pins.rows, window)
        if not rows:
            continue
        groups = of_window.metric % np.uint64(pins.groups)
        ordered = of_window.take(np.lexsort((of_window.key_low, of_window.key_high, of_window.metric, groups)))
        expected = expected_samples(ordered, pins.groups, rows, window, resolved.known)
        for first, stop in series_ranges(expected, task_samples):
            part = ordered.part(first, stop)
            held = rows_of(part, pins.groups, rows, window)
            tasks.append(SeriesTask(pins.dataset, pins.groups, part, expected[first:stop], window, held))
    return tasks


def _windows(times: TimeRange, samples: float, task_samples: int) -> list[TimeRange]:
    """Windows of complete UTC days, of about `task_samples` samples."""
    first, last = times.first // _DAY_MS, times.last // _DAY_MS
    days = last - first + 1
    step = max(1, min(days, int(days * task_samples / samples) if samples else days))
    return [
        TimeRange(max(times.first, day * _DAY_MS), min(times.last, (day + step) * _DAY_MS - 1))
        for day in range(first, last + 1, step)
    ]
