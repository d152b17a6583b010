"""Window functions without arithmetic: the first and the last sample of a window, their number, and presence."""

from numba import njit

from strandline.promql.kernels.window import after
from strandline.promql.values import NO_SAMPLE

FIRST, LAST, COUNT, PRESENT = 0, 1, 2, 3


@njit(cache=True, nogil=True, error_model="numpy")
def selected(first_sample, time, value, start, step, count, length, parameters, variant, out):
    """A window kernel with the variants FIRST, LAST, COUNT and PRESENT."""
    for series in range(len(first_sample) - 1):
        low = high = first_sample[series]
        end = first_sample[series + 1]
        for at in range(count):
            timestamp = start + at * step
            high = after(time, high, end, timestamp)
            low = after(time, low, high, timestamp - length)
            if low == high:
                out[series, at] = NO_SAMPLE
            elif variant == FIRST:
                out[series, at] = value[low]
            elif variant == LAST:
                out[series, at] = value[high - 1]
            elif variant == COUNT:
                out[series, at] = high - low
            else:
                out[series, at] = 1.0
