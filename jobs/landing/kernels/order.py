"""Kernels that choose the samples of a block that land, and sort them."""

import numpy as np
from numba import njit

KEPT, TOO_OLD, TOO_FAR_AHEAD, TOO_LARGE = 0, 1, 2, 3
OUTCOMES = 4


@njit(cache=True, nogil=True)
def choose_samples(row, times, is_large, oldest, newest, chosen, counts, first):
    """Write the indices of the samples that land to `chosen`, in their order. Returns their number.

    Sets `counts` to the number of samples by outcome, and `first` to the first sample of each outcome. `is_large` marks
    the series that do not fit into a record.
    """
    n_chosen = 0
    for sample in range(len(row)):
        time = times[sample]
        if time < oldest:
            outcome = TOO_OLD
        elif time > newest:
            outcome = TOO_FAR_AHEAD
        elif is_large[row[sample]]:
            outcome = TOO_LARGE
        else:
            chosen[n_chosen] = sample
            n_chosen += 1
            continue
        if counts[outcome] == 0:
            first[outcome] = sample
        counts[outcome] += 1
    counts[KEPT] = n_chosen
    return n_chosen


@njit(cache=True, nogil=True)
def sort_stably(keys, samples, counts, ordered):
    """Sort `samples` by `keys[sample]` into `ordered`, with a stable counting sort.

    Sets `counts`, which has an element for each key, to the number of samples by key.
    """
    counts[:] = 0
    is_ordered, previous = True, 0
    for sample in samples:
        key = keys[sample]
        counts[key] += 1
        is_ordered = is_ordered and key >= previous
        previous = key
    if is_ordered:
        # Common: sources are often written series by series or hour by hour.
        ordered[:] = samples
        return
    position = np.empty(len(counts), dtype=np.int64)
    total = 0
    for key in range(len(counts)):
        position[key] = total
        total += counts[key]
    for sample in samples:
        key = keys[sample]
        ordered[position[key]] = sample
        position[key] += 1
