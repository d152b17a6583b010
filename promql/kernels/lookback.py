"""Instant selectors: the latest sample at each step, unless it is a staleness marker or out of the lookback delta."""

import numpy as np
from numba import njit

from strandline.promql.kernels.window import after
from strandline.promql.values import NO_SAMPLE, STALE_BITS

VALUE, TIME = 0, 1


@njit(cache=True, nogil=True, error_model="numpy")
def latest(first_sample, time, value, start, step, count, length, parameters, variant, out):
    """Like a window kernel, but for samples with staleness markers. Variants: VALUE; TIME, in seconds."""
    bits = value.view(np.int64)
    for series in range(len(first_sample) - 1):
        begin = high = first_sample[series]
        end = first_sample[series + 1]
        for at in range(count):
            timestamp = start + at * step
            high = after(time, high, end, timestamp)
            last = high - 1
            if high == begin or time[last] <= timestamp - length or bits[last] == STALE_BITS:
                out[series, at] = NO_SAMPLE
            elif variant == VALUE:
                out[series, at] = value[last]
            else:
                out[series, at] = time[last] / 1000
