"""Encodes the times of runs as numbers that compress, and decodes them.

Series of one target are scraped together and are adjacent, so most runs have the same times as the run before. Those
are flagged, and store nothing. The others store the difference of their first time, and of their first step, from the
last run that stored one, and then the change of each step.
"""

import numpy as np
from numba import njit


@njit(cache=True)
def _repeats_times(time, before, start, end):
    at = start
    while at < end and time[at] == time[at - start + before]:
        at += 1
    return at == end


@njit(cache=True, nogil=True)
def split_times(first, time, same, starts, steps, step_changes):
    """Set `same` for the runs that repeat the times of the run before, and fill the three streams for the others.
    Return the length of each stream.
    """
    n_starts, n_steps, n_changes = 0, 0, 0
    last_start, last_step = 0, 0
    for run in range(len(first) - 1):
        start, end = first[run], first[run + 1]
        same[run] = (
            run > 0 and start - first[run - 1] == end - start and _repeats_times(time, first[run - 1], start, end)
        )
        if same[run]:
            continue
        starts[n_starts] = time[start] - last_start
        last_start = time[start]
        n_starts += 1
        if end - start == 1:
            continue
        step = time[start + 1] - time[start]
        steps[n_steps] = step - last_step
        last_step = step
        n_steps += 1
        for sample in range(start + 2, end):
            next_step = time[sample] - time[sample - 1]
            step_changes[n_changes] = next_step - step
            step = next_step
            n_changes += 1
    return n_starts, n_steps, n_changes


@njit(cache=True, nogil=True)
def join_times(counts, same, starts, steps, step_changes, to, time):
    """Write the times of each run from `time[to[run]]`; runs with a negative `to` are skipped. The inverse of
    `split_times`. `counts` has the length of each run.
    """
    n_starts, n_steps, n_changes = 0, 0, 0
    start, step, next_change = 0, 0, 0
    for run in range(len(counts)):
        count = np.int64(counts[run])
        if not same[run]:
            start += starts[n_starts]
            n_starts += 1
            next_change = n_changes
            if count > 1:
                step += steps[n_steps]
                n_steps += 1
                n_changes += count - 2
        at = to[run]
        if at < 0:
            continue
        # A run that repeats the times of the run before is decoded again, because that one may not be wanted.
        time[at] = start
        if count > 1:
            rise = step
            time[at + 1] = start + rise
            for sample in range(2, count):
                rise += step_changes[next_change + sample - 2]
                time[at + sample] = time[at + sample - 1] + rise
