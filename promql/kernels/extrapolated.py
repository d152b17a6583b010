"""`rate`, `increase` and `delta`: the difference between the last and the first sample of a window, extrapolated to the
window's bounds.
"""

import numpy as np
from numba import njit

from strandline.promql.kernels.window import find_windows, max_samples
from strandline.promql.values import NO_SAMPLE

RATE, INCREASE, DELTA = 0, 1, 2


@njit(cache=True, nogil=True, error_model="numpy")
def _seconds(milliseconds):
    """Go's conversion of a duration, whose rounding may differ from a plain division."""
    return milliseconds // 1000 + (milliseconds % 1000 * 1_000_000) / 1e9


@njit(cache=True, nogil=True, error_model="numpy")
def _find_resets(value, resets):
    """Write the positions of the samples that are below the previous one to `resets`. Returns their number. The first
    loop, which vectorises, handles the common case without resets.
    """
    falls = 0
    for at in range(len(value) - 1):
        falls += value[at + 1] < value[at]
    if falls == 0:
        return 0
    found = 0
    for at in range(1, len(value)):
        resets[found] = at
        found += value[at] < value[at - 1]
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def _add_resets(value, resets, begin, low, high, increase):
    """Add the value before each reset: the counter restarted at zero."""
    first = 0
    for at in range(len(low)):
        while first < len(resets) and begin + resets[first] <= low[at]:
            first += 1
        total = increase[at]
        reset = first
        while reset < len(resets) and begin + resets[reset] < high[at]:
            total += value[begin + resets[reset] - 1]
            reset += 1
        increase[at] = total


@njit(cache=True, nogil=True, error_model="numpy")
def _extrapolate(to_start, to_end, covered, intervals, first_value, increase, is_counter, divisor):
    """Scale each increase to the length of its window. If a bound is at least 1.1 average intervals away from the
    sample, the series is assumed to start or end half an interval from it. A counter is not extrapolated below zero.
    """
    for at in range(len(increase)):
        seconds = covered[at] / 1000
        interval = seconds / intervals[at]
        threshold = interval * 1.1
        to_start_s = to_start[at] / 1000
        if to_start_s >= threshold:
            to_start_s = interval / 2
        to_zero = seconds * (first_value[at] / increase[at])
        if is_counter and increase[at] > 0 and first_value[at] >= 0 and to_zero < to_start_s:
            to_start_s = to_zero
        to_end_s = to_end[at] / 1000
        if to_end_s >= threshold:
            to_end_s = interval / 2
        increase[at] *= (seconds + to_start_s + to_end_s) / seconds / divisor


@njit(cache=True, nogil=True, error_model="numpy")
def extrapolated(first_sample, time, value, start, step, count, length, parameters, variant, out):
    """A window kernel with the variants RATE, INCREASE and DELTA. Resets are found once per series, and each window
    adds its own. Windows are extrapolated in a separate loop without dependencies, which vectorises.
    """
    is_counter = variant != DELTA
    divisor = _seconds(length) if variant == RATE else 1.0
    resets = np.empty(max_samples(first_sample), dtype=np.int64)
    low = np.empty(count, dtype=np.int64)
    high = np.empty(count, dtype=np.int64)
    state = np.empty((5, count), dtype=np.float64)
    to_start, to_end, covered, intervals, first_value = state[0], state[1], state[2], state[3], state[4]
    for series in range(len(first_sample) - 1):
        begin, end = first_sample[series], first_sample[series + 1]
        increase = out[series]
        if end - begin < 2:
            increase[:] = NO_SAMPLE
            continue
        find_windows(time, begin, end, start, step, length, low, high)
        for at in range(count):
            timestamp = start + at * step
            first, last = min(low[at], end - 1), max(high[at] - 1, begin)
            first_value[at] = value[first]
            increase[at] = value[last] - value[first]
            to_start[at] = time[first] - (timestamp - length)
            to_end[at] = timestamp - time[last]
            covered[at] = time[last] - time[first]
            intervals[at] = last - first
        if is_counter:
            found = _find_resets(value[begin:end], resets)
            if found:
                _add_resets(value, resets[:found], begin, low, high, increase)
        _extrapolate(to_start, to_end, covered, intervals, first_value, increase, is_counter, divisor)
        for at in range(count):
            if high[at] - low[at] < 2:
                increase[at] = NO_SAMPLE
