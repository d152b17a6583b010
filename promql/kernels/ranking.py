"""`topk` and `bottomk`: the best values of each group and step, found with heaps. Of equal values, the earlier row is
better. This is a total order of rows, so the best rows of all blocks are among the best rows of each block.

"No sample" is recognised by its bits.
"""

import numpy as np
from numba import njit

from strandline.promql.values import NO_SAMPLE, NO_SAMPLE_BITS

NONE = np.int64(NO_SAMPLE_BITS)
NO_VALUE = np.float64(NO_SAMPLE)


@njit(cache=True, nogil=True, inline="always")
def _is_worse(value, position, other, other_position, sign):
    """Whether a value is dropped before another: a lower one, NaN before numbers, of equal ones the later."""
    if value == other:
        return position > other_position
    if np.isnan(value):
        return not np.isnan(other) or position > other_position
    return sign * value < sign * other


@njit(cache=True, nogil=True)
def _sift_up(heap, positions, at, sign):
    while at:
        parent = (at - 1) >> 1
        if not _is_worse(heap[at], positions[at], heap[parent], positions[parent], sign):
            break
        heap[at], heap[parent] = heap[parent], heap[at]
        positions[at], positions[parent] = positions[parent], positions[at]
        at = parent


@njit(cache=True, nogil=True)
def _sift_down(heap, positions, size, sign):
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _is_worse(heap[child + 1], positions[child + 1], heap[child], positions[child], sign):
            child += 1
        if not _is_worse(heap[child], positions[child], heap[at], positions[at], sign):
            break
        heap[at], heap[child] = heap[child], heap[at]
        positions[at], positions[child] = positions[child], positions[at]
        at = child


@njit(cache=True, nogil=True)
def rank(values, bits, by_group, first_of_group, limits, sign, out, is_chosen, order):
    """Write the `limits[step]` best values of each group and step to `out`, and mark their rows in `is_chosen`. The
    best value is the largest, or with `sign` -1 the smallest; NaN is the worst. Of equal values, those that come first
    in `by_group` are better.

    `order` gets the chosen rows of the first step, group by group, unordered within a group. Returns their number, and
    whether at any step a value was dropped that is equal to a chosen one.
    """
    steps = values.shape[1]
    ordered = 0
    has_ties = False
    for group in range(len(first_of_group) - 1):
        first, end = first_of_group[group], first_of_group[group + 1]
        max_limit = 0
        for step in range(steps):
            max_limit = max(max_limit, min(limits[step], end - first))
        if max_limit < 1:
            continue
        heaps, positions = np.empty((steps, max_limit), dtype=np.float64), np.empty((steps, max_limit), dtype=np.int64)
        sizes, best_lost = np.zeros(steps, dtype=np.int64), np.full(steps, NO_VALUE)
        has_lost = np.zeros(steps, dtype=np.bool_)
        for position in range(first, end):
            row = by_group[position]
            value, bit = values[row], bits[row]
            for step in range(steps):
                if bit[step] == NONE:
                    continue
                size, limit = sizes[step], limits[step]
                if size < limit:
                    heaps[step, size], positions[step, size] = value[step], position
                    sizes[step] += 1
                    _sift_up(heaps[step], positions[step], size, sign)
                elif limit > 0:
                    new, worst = value[step], heaps[step, 0]
                    if sign * worst < sign * new or (np.isnan(worst) and not np.isnan(new)):
                        best_lost[step], has_lost[step] = worst, True
                        heaps[step, 0], positions[step, 0] = new, position
                        _sift_down(heaps[step], positions[step], size, sign)
                    elif new == worst or np.isnan(worst):
                        best_lost[step], has_lost[step] = worst, True
        for step in range(steps):
            if has_lost[step]:
                worst, lost = heaps[step, 0], best_lost[step]
                has_ties |= worst == lost or (np.isnan(worst) and np.isnan(lost))
            for position in range(sizes[step]):
                row = by_group[positions[step, position]]
                out[row, step] = heaps[step, position]
                is_chosen[row] = True
        for position in range(sizes[0]):
            order[ordered] = by_group[positions[0, position]]
            ordered += 1
    return ordered, has_ties
