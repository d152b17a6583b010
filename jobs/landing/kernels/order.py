"""The kernels that choose the samples of a block which land, and put them into order."""

import numpy as np
from numba import njit

KEPT, TOO_OLD, TOO_FAR_AHEAD, TOO_LARGE = 0, 1, 2, 3
OUTCOMES = 4


@njit(cache=True, nogil=True)
def choose_samples(row, times, is_large, oldest, newest, chosen, counts, first):
    """List the samples that land in `chosen`, in their order, and give their number.

    `counts` gets the number of samples for each outcome, `first` the first sample of each. `is_large` marks the series
    that fit into no record.
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
    """Put `samples` into `ordered` by `keys[sample]`, those of equal keys as they stood: a counting sort.

    `counts` has a place for each key, and gets the number of samples that have it.
    """
    counts[:] = 0
    is_ordered, previous = True, 0
    for sample in samples:
        key = keys[sample]
        counts[key] += 1
        is_ordered = is_ordered and key >= previous
        previous = key
    if is_ordered:
        # As sources that were written series by series or hour by hour are.
        ordered[:] = samples
        return
    place = np.empty(len(counts), dtype=np.int64)
    behind = 0
    for key in range(len(counts)):
        place[key] = behind
        behind += counts[key]
    for sample in samples:
        key = keys[sample]
        ordered[place[key]] = sample
        place[key] += 1
