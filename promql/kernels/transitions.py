"""`resets` and `changes`: the number of samples in a window that are below, or differ from, the previous one."""

import numpy as np
from numba import njit

from strandline.promql.kernels.window import after, max_samples
from strandline.promql.values import NO_SAMPLE

RESETS, CHANGES = 0, 1


@njit(cache=True, nogil=True)
def _is_change(before, now):
    """Whether the value changed. NaN after NaN is no change."""
    return now != before and not (now != now and before != before)  # noqa: PLR0124 - NaN differs from itself


@njit(cache=True, nogil=True, error_model="numpy")
def transitions(first_sample, time, value, start, step, count, length, parameters, variant, out):
    """A window kernel with the variants RESETS and CHANGES. Each window is a difference of a series' prefix counts."""
    prefix_counts = np.zeros(max_samples(first_sample) + 1, dtype=np.int64)
    for series in range(len(first_sample) - 1):
        begin = low = high = first_sample[series]
        end = first_sample[series + 1]
        for at in range(begin + 1, end):
            before, now = value[at - 1], value[at]
            found = now < before if variant == RESETS else _is_change(before, now)
            prefix_counts[at - begin] = prefix_counts[at - begin - 1] + found
        for at in range(count):
            timestamp = start + at * step
            high = after(time, high, end, timestamp)
            low = after(time, low, high, timestamp - length)
            if low == high:
                out[series, at] = NO_SAMPLE
            else:
                out[series, at] = prefix_counts[high - 1 - begin] - prefix_counts[low - begin]
