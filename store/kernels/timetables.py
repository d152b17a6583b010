"""The times of series, with each distinct sequence stored once: all series of a scrape have the same times."""

import numpy as np
from numba import njit

from strandline.store.kernels.trends import restore

U64 = np.uint64
MIX = U64(0x9E3779B97F4A7C15)
EARLIEST, LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
# The value of `same_as` for a series whose times no earlier series has.
NEW = 0


@njit(cache=True, nogil=True)
def _mix(hashed, number):
    hashed = (hashed ^ U64(number)) * MIX
    return hashed ^ (hashed >> U64(29))


@njit(cache=True, nogil=True)
def _are_same(time, one, other, count):
    at = 0
    while at < count and time[one + at] == time[other + at]:
        at += 1
    return at == count


@njit(cache=True, nogil=True)
def find_timetables(time, first, slots, same_as, leader):
    """Number the distinct sequences of times in the order of their first series, and write that series into `leader`.

    `same_as` gets NEW for such a series, and 1 + the number of its timetable for every other. `slots` must be filled
    with -1, and have a power of two as length, at least twice the number of series. Returns the number of timetables.
    """
    mask = len(slots) - 1
    found = 0
    for series in range(len(first) - 1):
        start, count = first[series], first[series + 1] - first[series]
        # A few times distinguish most sequences; candidates are compared completely below.
        hashed = _mix(_mix(_mix(MIX, count), time[start]), time[start + count - 1])
        hashed = _mix(
            _mix(_mix(hashed, time[start + count // 4]), time[start + count // 2]), time[start + count * 3 // 4]
        )
        slot = np.int64(hashed >> U64(20)) & mask
        same_as[series] = NEW
        while slots[slot] >= 0:
            number = slots[slot]
            other = leader[number]
            if first[other + 1] - first[other] == count and _are_same(time, start, first[other], count):
                same_as[series] = number + 1
                break
            slot = (slot + 1) & mask
        if same_as[series] == NEW:
            slots[slot] = found
            leader[found] = series
            found += 1
    return found


@njit(cache=True, nogil=True)
def number_timetables(same_as, number):
    """Convert the `same_as` of `find_timetables` into the timetable of each series. Return the number of timetables; -1
    if one is referenced before its first series.
    """
    found = 0
    for series in range(len(same_as)):
        if same_as[series] == NEW:
            number[series] = found
            found += 1
        elif same_as[series] <= found:
            number[series] = same_as[series] - 1
        else:
            return -1
    return found


@njit(cache=True, nogil=True)
def restore_times(
    of_series,
    wanted,
    first,
    begin,
    slope,
    kind,
    level,
    residuals,
    residual_start,
    least,
    greatest,
    starts,
    ends,
    time,
):
    """Write the times from `least` to `greatest` (inclusive) of the wanted series into `time`, one series after the
    other; it has space for all of their times. `starts` and `ends` get the range of each series' samples, 0 and 0 for
    none.

    Returns the number of times, the minimum and maximum of the restored ones, and whether all sequences are ascending.
    A timetable is restored for each series that has it, because copying would take as long.
    """
    to, earliest, latest, rises = 0, LATEST, EARLIEST, True
    for series in range(len(of_series)):
        starts[series] = ends[series] = 0
        if not wanted[series]:
            continue
        table = of_series[series]
        count = first[table + 1] - first[table]
        restore(
            begin[table], slope[table], kind[table], level[table], residuals, residual_start[table], count, time, to
        )
        falls = 0
        for at in range(to + 1, to + count):
            falls += time[at] <= time[at - 1]
        rises = rises and falls == 0
        earliest, latest = min(earliest, time[to]), max(latest, time[to + count - 1])
        start, end = _cut(time, to, to + count, least, greatest)
        if start > to:
            for at in range(end - start):
                time[to + at] = time[start + at]
        if end > start:
            starts[series], ends[series] = start - to, end - to
            to += end - start
    return to, earliest, latest, rises


@njit(cache=True, nogil=True)
def _cut(time, low, end, least, greatest):
    """Return the range of the times from `least` to `greatest` (inclusive)."""
    if time[low] >= least and time[end - 1] <= greatest:
        return low, end
    high = end
    while low < high:
        middle = (low + high) // 2
        if time[middle] < least:
            low = middle + 1
        else:
            high = middle
    start, high = low, end
    while low < high:
        middle = (low + high) // 2
        if time[middle] <= greatest:
            low = middle + 1
        else:
            high = middle
    return start, low


@njit(cache=True, nogil=True)
def copy_runs(source, starts, ends, out):
    """Copy the ranges `source[starts[i]:ends[i]]` one after the other into `out`, which has exactly their total
    length.
    """
    at = 0
    for run in range(len(starts)):
        for position in range(starts[run], ends[run]):
            out[at] = source[position]
            at += 1
