"""`min_over_time` and `max_over_time`."""

import numpy as np
from numba import njit

from strandline.promql.kernels.window import after, find_windows, max_samples
from strandline.promql.values import NO_SAMPLE

MIN, MAX = 0, 1
# With more steps per window, a queue is cheaper than reading every sample of every window.
STEPS_IN_WINDOW = 12


@njit(cache=True, nogil=True)
def _signed_max(value, low, high, sign):
    """The maximum of `sign` times the samples; NaN only if all are NaN."""
    best = sign * value[low]
    for at in range(low + 1, high):
        candidate = sign * value[at]
        if candidate > best or best != best:  # noqa: PLR0124 - NaN differs from itself
            best = candidate
    return best


@njit(cache=True, nogil=True)
def _by_window(first_sample, time, value, start, step, count, length, sign, out):
    for series in range(len(first_sample) - 1):
        low = high = first_sample[series]
        end = first_sample[series + 1]
        for at in range(count):
            timestamp = start + at * step
            high = after(time, high, end, timestamp)
            low = after(time, low, high, timestamp - length)
            out[series, at] = sign * _signed_max(value, low, high, sign) if low < high else NO_SAMPLE


@njit(cache=True, nogil=True)
def _by_queue(first_sample, time, value, start, step, count, length, sign, out):
    """A monotonic queue. The bounds of all windows divide the samples into runs. The queue contains the maxima of runs
    that may still become the maximum of a window, in descending order. Of equal ones, the earlier comes first. NaN is
    never in the queue.
    """
    low = np.empty(count, dtype=np.int64)
    high = np.empty(count, dtype=np.int64)
    begins = np.empty(max_samples(first_sample), dtype=np.int64)
    queue = np.empty(max_samples(first_sample), dtype=np.float64)
    for series in range(len(first_sample) - 1):
        find_windows(time, first_sample[series], first_sample[series + 1], start, step, length, low, high)
        front = back = bound = 0
        sample = low[0]
        for at in range(count):
            while sample < high[at]:
                while bound < count and low[bound] <= sample:
                    bound += 1
                until = min(high[at], low[bound]) if bound < count else high[at]
                candidate = _signed_max(value, sample, until, sign)
                if candidate == candidate:  # noqa: PLR0124 - NaN differs from itself
                    while back > front and queue[back - 1] < candidate:
                        back -= 1
                    begins[back], queue[back] = sample, candidate
                    back += 1
                sample = until
            while front < back and begins[front] < low[at]:
                front += 1
            if low[at] == high[at]:
                out[series, at] = NO_SAMPLE
            else:
                out[series, at] = sign * queue[front] if front < back else np.nan


@njit(cache=True, nogil=True)
def extremes(first_sample, time, value, start, step, count, length, parameters, variant, out):
    """A window kernel with the variants MIN and MAX."""
    sign = 1.0 if variant == MAX else -1.0
    if count == 1 or length <= STEPS_IN_WINDOW * step:
        _by_window(first_sample, time, value, start, step, count, length, sign, out)
    else:
        _by_queue(first_sample, time, value, start, step, count, length, sign, out)
