"""`deriv` and `predict_linear`: linear regression (least squares) over the samples of a window."""

import numpy as np
from numba import njit

from strandline.promql.kernels.compensated import add, is_infinite
from strandline.promql.kernels.window import after
from strandline.promql.values import NO_SAMPLE

DERIV, PREDICT_LINEAR = 0, 1


@njit(cache=True, nogil=True, error_model="numpy")
def _line(time, value, low, high, origin):
    """The slope of the regression line per second, and its value at `origin`."""
    first = value[low]
    is_constant = True
    x_sum = x_lost = y_sum = y_lost = xy_sum = xy_lost = xx_sum = xx_lost = 0.0
    for at in range(low, high):
        x = (time[at] - origin) / 1e3
        y = value[at]
        is_constant = is_constant and (at == low or y == first)
        x_sum, x_lost = add(x, x_sum, x_lost)
        y_sum, y_lost = add(y, y_sum, y_lost)
        xy_sum, xy_lost = add(x * y, xy_sum, xy_lost)
        xx_sum, xx_lost = add(x * x, xx_sum, xx_lost)
    if is_constant:
        return (np.nan, np.nan) if is_infinite(first) else (0.0, first)
    count = float(high - low)
    x_sum += x_lost
    y_sum += y_lost
    xy_sum += xy_lost
    xx_sum += xx_lost
    slope = (xy_sum - x_sum * y_sum / count) / (xx_sum - x_sum * x_sum / count)
    return slope, y_sum / count - slope * x_sum / count


@njit(cache=True, nogil=True, error_model="numpy")
def regression(first_sample, time, value, start, step, count, length, parameters, variant, out):
    """A window kernel with the variants DERIV and PREDICT_LINEAR. The parameters of the latter are the number of
    seconds to predict, and the evaluation timestamps in milliseconds, which `offset` makes differ from the windows'
    ends.
    """
    for series in range(len(first_sample) - 1):
        low = high = first_sample[series]
        end = first_sample[series + 1]
        for at in range(count):
            timestamp = start + at * step
            high = after(time, high, end, timestamp)
            low = after(time, low, high, timestamp - length)
            if high - low < 2:
                out[series, at] = NO_SAMPLE
            elif variant == DERIV:
                out[series, at] = _line(time, value, low, high, time[low])[0]
            else:
                slope, now = _line(time, value, low, high, np.int64(parameters[1, at]))
                out[series, at] = slope * parameters[0, at] + now
