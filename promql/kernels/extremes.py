"""`min_over_time` and `max_over_time`."""

import numpy as np
from numba import njit

from strandline.promql.kernels.window import after, longest
from strandline.promql.values import NO_SAMPLE

MIN, MAX = 0, 1
# From how many steps in a window on a queue is cheaper than to look at every sample of every window.
STEPS_IN_WINDOW = 4


@njit(cache=True, nogil=True)
def _greatest(value, low, high, sign):
    """The greatest sample, or with `sign` -1 the least; NaN only if there is nothing else."""
    best = sign * value[low]
    for at in range(low + 1, high):
        candidate = sign * value[at]
        if candidate > best or best != best:  # noqa: PLR0124 - NaN differs from itself
            best = candidate
    return sign * best


@njit(cache=True, nogil=True)
def _by_window(first_sample, time, value, start, step, count, length, sign, out):
    for series in range(len(first_sample) - 1):
        low = high = first_sample[series]
        end = first_sample[series + 1]
        for at in range(count):
            moment = start + at * step
            high = after(time, high, end, moment)
            low = after(time, low, high, moment - length)
            out[series, at] = _greatest(value, low, high, sign) if low < high else NO_SAMPLE


@njit(cache=True, nogil=True)
def _by_queue(first_sample, time, value, start, step, count, length, sign, out):
    """The queue has the samples that may still become the greatest, falling. Of equal ones the earlier stands before
    the later, and NaN is never in it.
    """
    queue = np.empty(longest(first_sample), dtype=np.int64)
    for series in range(len(first_sample) - 1):
        low = high = first_sample[series]
        end = first_sample[series + 1]
        front = back = 0
        for at in range(count):
            moment = start + at * step
            while high < end and time[high] <= moment:
                candidate = sign * value[high]
                if candidate == candidate:  # noqa: PLR0124 - NaN differs from itself
                    while back > front and sign * value[queue[back - 1]] < candidate:
                        back -= 1
                    queue[back] = high
                    back += 1
                high += 1
            low = after(time, low, high, moment - length)
            while front < back and queue[front] < low:
                front += 1
            if low == high:
                out[series, at] = NO_SAMPLE
            else:
                out[series, at] = value[queue[front]] if front < back else value[high - 1]


@njit(cache=True, nogil=True)
def extremes(first_sample, time, value, start, step, count, length, parameters, variant, out):
    """A window kernel of these variants: MIN, MAX."""
    sign = 1.0 if variant == MAX else -1.0
    if count == 1 or length <= STEPS_IN_WINDOW * step:
        _by_window(first_sample, time, value, start, step, count, length, sign, out)
    else:
        _by_queue(first_sample, time, value, start, step, count, length, sign, out)
