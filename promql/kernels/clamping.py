"""Values held between bounds, with NaN and infinities as Go's `math.Max` and `math.Min` have them."""

import math

import numpy as np
from numba import njit

from strandline.promql.kernels.no_sample import NO_SAMPLE_BITS


@njit(cache=True, nogil=True, inline="always")
def _smaller(one, other):
    """An infinity wins over NaN, and -0 is below 0."""
    if one == -np.inf or other == -np.inf:
        return -np.inf
    if math.isnan(one) or math.isnan(other):
        return np.nan
    if one == 0.0 and other == 0.0:
        return one if math.copysign(1.0, one) < 0.0 else other
    return min(one, other)


@njit(cache=True, nogil=True)
def clamp_rows(values, low, high, out):
    """Each value raised to `low` and lowered to `high` of its step. A step whose bounds cross has no samples."""
    bits, out_bits = values.view(np.uint64), out.view(np.uint64)
    for row in range(values.shape[0]):
        for step in range(values.shape[1]):
            if bits[row, step] == NO_SAMPLE_BITS or high[step] < low[step]:
                out_bits[row, step] = NO_SAMPLE_BITS
            else:
                lowered = _smaller(high[step], values[row, step])
                out[row, step] = -_smaller(-low[step], -lowered)
