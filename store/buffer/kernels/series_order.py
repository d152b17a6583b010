"""Orders of a dictionary's series: by group, and by whether a query wants them."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def order_by_group(group, place, numbers, group_first):
    """Compute the order by (group, number): `place[number]`, its inverse `numbers[place]`, and the first place of each
    group.

    `group_first` has one more entry than there are groups.
    """
    group_first[:] = 0
    for number in range(len(group)):
        group_first[group[number] + 1] += 1
    for one in range(1, len(group_first)):
        group_first[one] += group_first[one - 1]
    cursor = group_first.copy()
    for number in range(len(group)):
        at = cursor[group[number]]
        cursor[group[number]] = at + 1
        place[number] = at
        numbers[at] = number


@njit(cache=True)
def _slot_of(slots, metric, high, low, wanted_metric, wanted_high, wanted_low):
    """Return the slot of a key among the wanted ones, or the free slot where it would be inserted."""
    mask = np.uint64(len(slots) - 1)
    slot = np.int64((low ^ metric) & mask)
    while True:
        asked = slots[slot]
        if asked < 0:
            return slot
        if wanted_low[asked] == low and wanted_high[asked] == high and wanted_metric[asked] == metric:
            return slot
        slot = (slot + 1) & np.int64(mask)


@njit(cache=True, nogil=True)
def find_numbers(metric, high, low, wanted_metric, wanted_high, wanted_low, slots, numbers):
    """Fill `numbers` with the numbers of the wanted series, in ascending order; return how many there are.

    `slots` must be filled with -1, its length a power of two above the number of wanted keys. There is no permanent
    hash table of all series: scanning a million costs a query a few milliseconds, while a table would slow down
    ingestion all the time.
    """
    for asked in range(len(wanted_low)):
        slot = _slot_of(
            slots, wanted_metric[asked], wanted_high[asked], wanted_low[asked], wanted_metric, wanted_high, wanted_low
        )
        slots[slot] = asked
    found = 0
    for number in range(len(low)):
        slot = _slot_of(slots, metric[number], high[number], low[number], wanted_metric, wanted_high, wanted_low)
        if slots[slot] >= 0:
            numbers[found] = number
            found += 1
    return found
