"""Finds the samples of windows in a series."""

from numba import njit


@njit(cache=True, nogil=True)
def after(time, at, end, timestamp):
    """The first sample from `at` on that is later than `timestamp`; `end` if there is none."""
    while at < end and time[at] <= timestamp:
        at += 1
    return at


@njit(cache=True, nogil=True)
def find_windows(time, begin, end, start, step, length, low, high):
    """Find the samples of each window: from `low[j]` up to, not including, `high[j]`."""
    to = at = begin
    for window in range(len(low)):
        timestamp = start + window * step
        to = after(time, to, end, timestamp)
        at = after(time, at, to, timestamp - length)
        low[window], high[window] = at, to


@njit(cache=True, nogil=True)
def max_samples(first_sample):
    """The maximum number of samples in a series."""
    maximum = 0
    for series in range(len(first_sample) - 1):
        maximum = max(maximum, first_sample[series + 1] - first_sample[series])
    return maximum
