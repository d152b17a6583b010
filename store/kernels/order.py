"""Checks the order of series and times, and finds wanted series in it."""

from numba import njit


@njit(cache=True, nogil=True)
def first_unordered_series(metric, key_high, key_low):
    """Return the first series that is not above the one before it; -1 if all are in order."""
    for series in range(1, len(metric)):
        before = series - 1
        if metric[series] != metric[before]:
            is_above = metric[series] > metric[before]
        elif key_high[series] != key_high[before]:
            is_above = key_high[series] > key_high[before]
        else:
            is_above = key_low[series] > key_low[before]
        if not is_above:
            return series
    return -1


@njit(cache=True, nogil=True)
def first_unordered_times(time, first):
    """Return the first sequence whose times are not strictly ascending; -1 if there is none."""
    for sequence in range(len(first) - 1):
        falls = 0
        for at in range(first[sequence] + 1, first[sequence + 1]):
            falls += time[at] <= time[at - 1]
        if falls:
            return sequence
    return -1


@njit(cache=True, nogil=True)
def fill_wanted_mask(metric, key_high, key_low, wanted_metric, wanted_high, wanted_low, mask):
    """Set `mask` for the series that are among the wanted ones, which are in ascending order."""
    for series in range(len(metric)):
        low, high = 0, len(wanted_metric)
        while low < high:
            middle = (low + high) // 2
            if wanted_metric[middle] != metric[series]:
                is_below = wanted_metric[middle] < metric[series]
            elif wanted_high[middle] != key_high[series]:
                is_below = wanted_high[middle] < key_high[series]
            else:
                is_below = wanted_low[middle] < key_low[series]
            if is_below:
                low = middle + 1
            else:
                high = middle
        mask[series] = (
            low < len(wanted_metric)
            and wanted_metric[low] == metric[series]
            and wanted_high[low] == key_high[series]
            and wanted_low[low] == key_low[series]
        )
