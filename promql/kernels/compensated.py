"""Compensated sums (Kahan, with Neumaier's improvement), as Prometheus computes them."""

from numba import njit

MAX_FLOAT = 1.7976931348623157e308


@njit(cache=True, nogil=True)
def is_infinite(number):
    """Whether it is one of the infinities: NaN is not."""
    return number > MAX_FLOAT or number < -MAX_FLOAT


@njit(cache=True, nogil=True)
def add(increment, total, compensation):
    """The new total, and what has been lost by rounding so far. An infinite total has lost nothing."""
    new = total + increment
    if is_infinite(new):
        return new, 0.0
    if abs(total) >= abs(increment):
        return new, compensation + ((total - new) + increment)
    return new, compensation + ((increment - new) + total)
