"""Compensated summation (Kahan and Neumaier), as in Prometheus."""

from numba import njit

MAX_FLOAT = 1.7976931348623157e308


@njit(cache=True, nogil=True)
def is_infinite(number):
    """Whether the number is +Inf or -Inf."""
    return number > MAX_FLOAT or number < -MAX_FLOAT


@njit(cache=True, nogil=True)
def add(increment, total, compensation):
    """The new total and its compensation for rounding errors, which is 0 if the total is infinite."""
    new = total + increment
    if is_infinite(new):
        return new, 0.0
    if abs(total) >= abs(increment):
        return new, compensation + ((total - new) + increment)
    return new, compensation + ((increment - new) + total)
