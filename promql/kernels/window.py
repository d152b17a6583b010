"""Where windows begin and end among the samples of a series."""

from numba import njit


@njit(cache=True, nogil=True)
def after(time, at, end, moment):
    """The first sample from `at` on that is later than `moment`; `end` if none is."""
    while at < end and time[at] <= moment:
        at += 1
    return at


@njit(cache=True, nogil=True)
def longest(first_sample):
    """The most samples that a series has."""
    most = 0
    for series in range(len(first_sample) - 1):
        most = max(most, first_sample[series + 1] - first_sample[series])
    return most
