"""`stddev_over_time` and `stdvar_over_time`."""

from math import sqrt

from numba import njit

from strandline.promql.kernels.compensated import add
from strandline.promql.kernels.window import after
from strandline.promql.values import NO_SAMPLE

STDDEV, STDVAR = 0, 1


@njit(cache=True, nogil=True, error_model="numpy")
def _variance(value, low, high):
    """Welford's algorithm with compensated sums."""
    count = mean = mean_compensation = squares = squares_compensation = 0.0
    for at in range(low, high):
        count += 1
        distance = value[at] - (mean + mean_compensation)
        mean, mean_compensation = add(distance / count, mean, mean_compensation)
        squares, squares_compensation = add(
            distance * (value[at] - (mean + mean_compensation)), squares, squares_compensation
        )
    return (squares + squares_compensation) / count


@njit(cache=True, nogil=True, error_model="numpy")
def deviations(first_sample, time, value, start, step, count, length, parameters, variant, out):
    """A window kernel of these variants: STDDEV, STDVAR."""
    for series in range(len(first_sample) - 1):
        low = high = first_sample[series]
        end = first_sample[series + 1]
        for at in range(count):
            moment = start + at * step
            high = after(time, high, end, moment)
            low = after(time, low, high, moment - length)
            if low == high:
                out[series, at] = NO_SAMPLE
                continue
            variance = _variance(value, low, high)
            out[series, at] = variance if variant == STDVAR else sqrt(variance)
