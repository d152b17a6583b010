"""`irate` and `idelta`: the difference between the last two samples of a window."""

from numba import njit

from strandline.promql.kernels.window import after
from strandline.promql.values import NO_SAMPLE

IRATE, IDELTA = 0, 1


@njit(cache=True, nogil=True, error_model="numpy")
def last_difference(first_sample, time, value, start, step, count, length, parameters, variant, out):
    """A window kernel with the variants IRATE and IDELTA. A counter that decreased was reset and restarted at zero."""
    for series in range(len(first_sample) - 1):
        begin = high = first_sample[series]
        end = first_sample[series + 1]
        for at in range(count):
            timestamp = start + at * step
            high = after(time, high, end, timestamp)
            if high - begin < 2 or time[high - 2] <= timestamp - length:
                out[series, at] = NO_SAMPLE
                continue
            before, last = value[high - 2], value[high - 1]
            if variant == IDELTA:
                out[series, at] = last - before
            else:
                rise = last if last < before else last - before
                out[series, at] = rise / ((time[high - 1] - time[high - 2]) / 1000)
