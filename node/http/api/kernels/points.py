"""Which sample counts at each step of a range."""

import numpy as np
from numba import njit

STALE = np.uint64(0x7FF0000000000002)


@njit(cache=True)
def _advance(time, place, end, moment):
    """The place behind the last sample up to a moment: a few steps ahead, or by bisection if it is further."""
    for _ in range(8):
        if place == end or time[place] > moment:
            return place
        place += 1
    low, high = place, end
    while low < high:
        middle = (low + high) // 2
        if time[middle] <= moment:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def count_points(first_sample, time, bits, start, step, steps, lookback, counts):
    """How many steps of each series have a sample: the newest that is at most `lookback` old, its very age left out,
    and that does not say that the series ended. Step i is at `start + i * step`.
    """
    for series in range(len(counts)):
        begin, end = first_sample[series], first_sample[series + 1]
        place, count = begin, 0
        for number in range(steps):
            moment = start + number * step
            place = _advance(time, place, end, moment)
            if place > begin and time[place - 1] > moment - lookback and bits[place - 1] != STALE:
                count += 1
        counts[series] = count


@njit(cache=True, nogil=True)
def fill_points(first_sample, time, bits, start, step, steps, lookback, shift, out_time, out_bits):
    """The points themselves, series by series: at the time of the step, moved by `shift`, the bits of the sample."""
    at = 0
    for series in range(len(first_sample) - 1):
        begin, end = first_sample[series], first_sample[series + 1]
        place = begin
        for number in range(steps):
            moment = start + number * step
            place = _advance(time, place, end, moment)
            if place > begin and time[place - 1] > moment - lookback and bits[place - 1] != STALE:
                out_time[at] = moment + shift
                out_bits[at] = bits[place - 1]
                at += 1
    return at


@njit(cache=True, nogil=True)
def count_samples(first_sample, bits, counts):
    """How many samples of each series are not markers of its end."""
    for series in range(len(counts)):
        count = 0
        for place in range(first_sample[series], first_sample[series + 1]):
            if bits[place] != STALE:
                count += 1
        counts[series] = count
