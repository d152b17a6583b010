"""Computes the minimum and maximum sample times of keys from rows of samples."""

from numba import njit

from strandline.index.kernels.key_table import MISSING


@njit(cache=True, nogil=True)
def widen(numbers, first_sample, time, least, greatest):
    """Apply the samples of each row to the key of its number, unless that is `MISSING`."""
    for row in range(len(numbers)):
        number = numbers[row]
        if number == MISSING:
            continue
        low, high = least[number], greatest[number]
        for at in range(first_sample[row], first_sample[row + 1]):
            low = min(low, time[at])
            high = max(high, time[at])
        least[number], greatest[number] = low, high
