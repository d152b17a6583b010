"""`sum_over_time` and `avg_over_time`."""

import numpy as np
from numba import njit

from strandline.promql.kernels.compensated import add, is_infinite
from strandline.promql.kernels.window import after, max_samples
from strandline.promql.values import NO_SAMPLE

SUM, AVG = 0, 1
# Sums of integers are exact up to this limit, in any order.
MAX_EXACT = 9007199254740992.0


@njit(cache=True, nogil=True, error_model="numpy")
def _sum(value, low, high):
    total = compensation = 0.0
    for at in range(low, high):
        total, compensation = add(value[at], total, compensation)
    return total if is_infinite(total) else total + compensation


@njit(cache=True, nogil=True, error_model="numpy")
def _incremental_mean(value, low, at, high, total, compensation):
    """The mean of a window whose sum overflows with the sample `at`; `total` is the sum of the samples before."""
    mean, compensation = total / (at - low), compensation / (at - low)
    for index in range(at, high):
        count = float(index - low + 1)
        kept = (count - 1) / count
        mean, compensation = add(value[index] / count, kept * mean, kept * compensation)
    return mean + compensation


@njit(cache=True, nogil=True, error_model="numpy")
def _mean(value, low, high):
    total, compensation = value[low], 0.0
    for at in range(low + 1, high):
        new, new_compensation = add(value[at], total, compensation)
        if is_infinite(new):
            return _incremental_mean(value, low, at, high, total, compensation)
        total, compensation = new, new_compensation
    count = float(high - low)
    return total / count + compensation / count


@njit(cache=True, nogil=True, error_model="numpy")
def _exact_prefix_sums(value, begin, end, prefix_sums):
    """Compute the prefix sums of a series. Returns whether they and their differences are exact."""
    total = size = 0.0
    prefix_sums[0] = 0.0
    for at in range(begin, end):
        number = value[at]
        size += abs(number)
        if not (size <= MAX_EXACT and number == np.floor(number)):
            return False
        total += number
        prefix_sums[at - begin + 1] = total
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def sums(first_sample, time, value, start, step, count, length, parameters, variant, out):
    """A window kernel with the variants SUM and AVG. Each window is summed separately: with differences of prefix sums,
    NaN, Inf and rounding errors would remain. If windows overlap, differences are used for integers, which are exact.
    """
    overlap = count > 1 and length > step
    prefix_sums = np.empty(max_samples(first_sample) + 1 if overlap else 0, dtype=np.float64)
    for series in range(len(first_sample) - 1):
        begin = low = high = first_sample[series]
        end = first_sample[series + 1]
        is_exact = overlap and _exact_prefix_sums(value, begin, end, prefix_sums)
        for at in range(count):
            timestamp = start + at * step
            high = after(time, high, end, timestamp)
            low = after(time, low, high, timestamp - length)
            if low == high:
                out[series, at] = NO_SAMPLE
            elif is_exact:
                total = prefix_sums[high - begin] - prefix_sums[low - begin]
                out[series, at] = total if variant == SUM else total / (high - low)
            elif variant == SUM:
                out[series, at] = _sum(value, low, high)
            else:
                out[series, at] = _mean(value, low, high)
