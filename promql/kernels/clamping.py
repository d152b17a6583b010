"""`clamp`, with the semantics of Go's `math.Max` and `math.Min` for NaN and infinities."""

import math

import numpy as np
from numba import njit

from strandline.promql.kernels.no_sample import NO_SAMPLE_BITS


@njit(cache=True, nogil=True, inline="always")
def _go_min(one, other):
    """Go's `math.Min`: -Inf has priority over NaN, and -0 is below 0."""
    if one == -np.inf or other == -np.inf:
        return -np.inf
    if math.isnan(one) or math.isnan(other):
        return np.nan
    if one == 0.0 and other == 0.0:
        return one if math.copysign(1.0, one) < 0.0 else other
    return min(one, other)


@njit(cache=True, nogil=True)
def clamp_rows(values, low, high, out):
    """Clamp each value to `low` and `high` of its step. A step has no samples if `low` is above `high`."""
    bits, out_bits = values.view(np.uint64), out.view(np.uint64)
    for row in range(values.shape[0]):
        for step in range(values.shape[1]):
            if bits[row, step] == NO_SAMPLE_BITS or high[step] < low[step]:
                out_bits[row, step] = NO_SAMPLE_BITS
            else:
                lowered = _go_min(high[step], values[row, step])
                out[row, step] = -_go_min(-low[step], -lowered)
