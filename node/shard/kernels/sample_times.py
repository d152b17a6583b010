"""Samples whose time lies too far from their record's."""

from numba import njit


@njit(cache=True, nogil=True)
def count_outside(record, first_sample, time, record_times, behind, ahead):
    """How many samples lie more than `behind` before their record's time, and how many more than `ahead` after it."""
    old = 0
    far = 0
    for row in range(len(record)):
        least = record_times[record[row]] - behind
        greatest = record_times[record[row]] + ahead
        for sample in range(first_sample[row], first_sample[row + 1]):
            if time[sample] < least:
                old += 1
            elif time[sample] > greatest:
                far += 1
    return old, far


@njit(cache=True, nogil=True)
def keep_inside(record, first_sample, time, value, record_times, behind, ahead, kept_first, kept_time, kept_value):
    """Copy the samples that lie inside; `kept_first` gets where each row's begin. How many there are."""
    kept = 0
    for row in range(len(record)):
        kept_first[row] = kept
        least = record_times[record[row]] - behind
        greatest = record_times[record[row]] + ahead
        for sample in range(first_sample[row], first_sample[row + 1]):
            if least <= time[sample] <= greatest:
                kept_time[kept] = time[sample]
                kept_value[kept] = value[sample]
                kept += 1
    kept_first[len(record)] = kept
    return kept
