"""Runs, the consecutive samples of one series: collecting them from several pages, and sorting them."""

import numpy as np
from numba import njit

INSERTION_LIMIT = 32  # Up to this length, an insertion sort is faster than sorting indices.


@njit(cache=True, nogil=True)
def count_runs(numbers, counts, wanted, position, totals):
    """Add the count of each wanted series to `totals` at its position; return how many there are. Both lists of numbers
    are ascending.
    """
    found, at = 0, 0
    for run in range(len(numbers)):
        while at < len(wanted) and wanted[at] < numbers[run]:
            at += 1
        if at < len(wanted) and wanted[at] == numbers[run]:
            totals[position[at]] += counts[run]
            found += 1
    return found


@njit(cache=True, nogil=True)
def reserve_slots(numbers, counts, wanted, position, cursor, to):
    """Fill `to` with the position for each run, the cursor of its position, which advances; -1 if the run is not
    wanted.
    """
    at = 0
    for run in range(len(numbers)):
        while at < len(wanted) and wanted[at] < numbers[run]:
            at += 1
        to[run] = -1
        if at < len(wanted) and wanted[at] == numbers[run]:
            to[run] = cursor[position[at]]
            cursor[position[at]] += counts[run]


@njit(cache=True)
def _sort_run(time, bits, start, end):
    """Sort one run by time; samples with the same time keep their order of arrival."""
    if end - start > INSERTION_LIMIT:
        order = np.argsort(time[start:end], kind="mergesort")
        time[start:end] = time[start:end][order]
        bits[start:end] = bits[start:end][order]
        return
    for sample in range(start + 1, end):
        moving_time, moving_bits = time[sample], bits[sample]
        at = sample
        while at > start and time[at - 1] > moving_time:
            time[at] = time[at - 1]
            bits[at] = bits[at - 1]
            at -= 1
        time[at] = moving_time
        bits[at] = moving_bits


@njit(cache=True, nogil=True)
def sort_and_deduplicate(first, time, bits, first_time, last_time, kept, kept_first):
    """Sort every run by time, and keep the last arrival of each time; in place, closing the gaps.

    Run p is `[first[p], first[p + 1])`, in order of arrival. Samples outside of `first_time` to `last_time` (inclusive)
    are omitted. `kept` gets the runs that still have samples, `kept_first` their new starts and finally the end of the
    last one. Returns the number of these runs, and of samples that were dropped because a later one has the same time.
    """
    out, n_kept, dropped = 0, 0, 0
    for run in range(len(first) - 1):
        start, end = first[run], first[run + 1]
        if start == end:
            continue
        rises = True
        for sample in range(start + 1, end):
            if time[sample] <= time[sample - 1]:
                rises = False
                break
        if not rises:
            _sort_run(time, bits, start, end)
        began = out
        if rises and out == start and time[start] >= first_time and time[end - 1] <= last_time:
            out = end
        else:
            for sample in range(start, end):
                if sample + 1 < end and time[sample + 1] == time[sample]:
                    dropped += 1
                elif first_time <= time[sample] <= last_time:
                    time[out] = time[sample]
                    bits[out] = bits[sample]
                    out += 1
        if out > began:
            kept[n_kept] = run
            kept_first[n_kept] = began
            n_kept += 1
    kept_first[n_kept] = out
    return n_kept, dropped
