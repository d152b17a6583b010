"""`stddev_over_time` and `stdvar_over_time`."""

from math import sqrt

import numpy as np
from numba import njit

from strandline.promql.kernels.compensated import add
from strandline.promql.kernels.window import find_windows
from strandline.promql.values import NO_SAMPLE

STDDEV, STDVAR = 0, 1


@njit(cache=True, nogil=True, error_model="numpy")
def _add_sample(number, count, mean, mean_compensation, squares, squares_compensation):
    """Welford's algorithm with compensated sums: add a sample to each of several windows."""
    for window in range(len(count)):
        count[window] += 1
        distance = number - (mean[window] + mean_compensation[window])
        new, lost = add(distance / count[window], mean[window], mean_compensation[window])
        mean[window], mean_compensation[window] = new, lost
        product = distance * (number - (new + lost))
        squares[window], squares_compensation[window] = add(product, squares[window], squares_compensation[window])


@njit(cache=True, nogil=True, error_model="numpy")
def deviations(first_sample, time, value, start, step, count, length, parameters, variant, out):
    """A window kernel with the variants STDDEV and STDVAR. The outer loop is over samples, the inner one over the
    windows that contain the sample: sums of different windows are independent, so the CPU can compute them in parallel.
    """
    low = np.empty(count, dtype=np.int64)
    high = np.empty(count, dtype=np.int64)
    state = np.empty((5, count), dtype=np.float64)
    for series in range(len(first_sample) - 1):
        find_windows(time, first_sample[series], first_sample[series + 1], start, step, length, low, high)
        state[:] = 0
        first = past = 0
        for sample in range(low[0], high[count - 1]):
            while first < count and high[first] <= sample:
                first += 1
            while past < count and low[past] <= sample:
                past += 1
            if first < past:
                those = state[:, first:past]
                _add_sample(value[sample], those[0], those[1], those[2], those[3], those[4])
        for at in range(count):
            if low[at] == high[at]:
                out[series, at] = NO_SAMPLE
            else:
                variance = (state[3, at] + state[4, at]) / state[0, at]
                out[series, at] = variance if variant == STDVAR else sqrt(variance)
