"""Runs: the samples of one series side by side. Gathering them from several pages, and settling their order."""

import numpy as np
from numba import njit

INSERTION_LIMIT = 32  # Up to here moving samples one by one beats an array of indices.


@njit(cache=True, nogil=True)
def count_runs(numbers, counts, wanted, place, totals):
    """Add the count of each wanted series to `totals` at its place; how many there are. Both lists of numbers rise."""
    found, at = 0, 0
    for run in range(len(numbers)):
        while at < len(wanted) and wanted[at] < numbers[run]:
            at += 1
        if at < len(wanted) and wanted[at] == numbers[run]:
            totals[place[at]] += counts[run]
            found += 1
    return found


@njit(cache=True, nogil=True)
def reserve_slots(numbers, counts, wanted, place, cursor, to):
    """Fill `to` with where each run goes: where the cursor of its place stands, which moves on; -1 if not wanted."""
    at = 0
    for run in range(len(numbers)):
        while at < len(wanted) and wanted[at] < numbers[run]:
            at += 1
        to[run] = -1
        if at < len(wanted) and wanted[at] == numbers[run]:
            to[run] = cursor[place[at]]
            cursor[place[at]] += counts[run]


@njit(cache=True)
def _sort_run(time, bits, start, end):
    """Put one run into the order of its times; samples of one time keep the order in which they arrived."""
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
    """Make the times of every run rise, and keep of each time what arrived last; in place, closing the gaps.

    Run p is `first[p]` up to, not including, `first[p + 1]`, in order of arrival. Samples outside of `first_time` to
    `last_time`, both included, are left out. `kept` gets the runs that have a sample left, `kept_first` where each now
    starts and, at the end, where the last one ends. Gives how many runs are left, and how many samples were dropped
    because a later one has their time.
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
