"""Samples whose time is too far from their record's."""

from numba import njit


@njit(cache=True, nogil=True)
def count_outside(record, first_sample, time, least, greatest):
    """Count the samples before the minimum time of their record, and those after its maximum."""
    old = 0
    far = 0
    for row in range(len(record)):
        from_time = least[record[row]]
        to_time = greatest[record[row]]
        for sample in range(first_sample[row], first_sample[row + 1]):
            if time[sample] < from_time:
                old += 1
            elif time[sample] > to_time:
                far += 1
    return old, far


@njit(cache=True, nogil=True)
def keep_inside(record, first_sample, time, value, least, greatest, kept_first, kept_time, kept_value):
    """Copy the samples within the limits; `kept_first` gets the start of each row's. Return the number of samples."""
    kept = 0
    for row in range(len(record)):
        kept_first[row] = kept
        from_time = least[record[row]]
        to_time = greatest[record[row]]
        for sample in range(first_sample[row], first_sample[row + 1]):
            if from_time <= time[sample] <= to_time:
                kept_time[kept] = time[sample]
                kept_value[kept] = value[sample]
                kept += 1
    kept_first[len(record)] = kept
    return kept
