"""`rate`, `increase` and `delta`: the difference between the ends of a window, extrapolated to its bounds."""

import numpy as np
from numba import njit

from strandline.promql.kernels.window import after, longest
from strandline.promql.values import NO_SAMPLE

RATE, INCREASE, DELTA = 0, 1, 2


@njit(cache=True, nogil=True, error_model="numpy")
def _seconds(milliseconds):
    """As Go converts a duration: rounding may differ from a plain division."""
    return milliseconds // 1000 + (milliseconds % 1000 * 1_000_000) / 1e9


@njit(cache=True, nogil=True, error_model="numpy")
def _find_resets(value, begin, end, resets):
    """Which samples are less than the one before. How many there are."""
    found = 0
    for at in range(begin + 1, end):
        resets[found] = at
        found += value[at] < value[at - 1]
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def _factor(to_start, to_end, covered, intervals, first_value, rise, is_counter):
    """How much wider than its samples the window counts as. A bound further than 1.1 average intervals away is not
    reached: the series is taken to begin or end half an interval from its sample. A counter begins at zero at least.
    """
    interval = covered / intervals
    threshold = interval * 1.1
    if to_start >= threshold:
        to_start = interval / 2
    if is_counter and rise > 0 and first_value >= 0:
        to_zero = covered * (first_value / rise)
        if to_zero < to_start:  # noqa: PLR1730 - min() would take NaN
            to_start = to_zero
    if to_end >= threshold:
        to_end = interval / 2
    return (covered + to_start + to_end) / covered


@njit(cache=True, nogil=True, error_model="numpy")
def extrapolated(first_sample, time, value, start, step, count, length, parameters, variant, out):
    """A window kernel of these variants: RATE, INCREASE, DELTA. Resets are found once a series; a window adds up its
    own.
    """
    is_counter = variant != DELTA
    seconds = _seconds(length)
    resets = np.empty(longest(first_sample), dtype=np.int64)
    for series in range(len(first_sample) - 1):
        low = high = first_sample[series]
        end = first_sample[series + 1]
        found = _find_resets(value, low, end, resets) if is_counter else 0
        first_reset = 0
        for at in range(count):
            moment = start + at * step
            high = after(time, high, end, moment)
            low = after(time, low, high, moment - length)
            if high - low < 2:
                out[series, at] = NO_SAMPLE
                continue
            rise = value[high - 1] - value[low]
            while first_reset < found and resets[first_reset] <= low:
                first_reset += 1
            reset = first_reset
            while reset < found and resets[reset] < high:
                rise += value[resets[reset] - 1]
                reset += 1
            factor = _factor(
                (time[low] - (moment - length)) / 1000,
                (moment - time[high - 1]) / 1000,
                (time[high - 1] - time[low]) / 1000,
                high - low - 1,
                value[low],
                rise,
                is_counter,
            )
            if variant == RATE:
                factor /= seconds
            out[series, at] = rise * factor
