"""Orders of a dictionary's series: by group, and by whether a query wants them."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def order_by_group(group, position, numbers, group_first):
    """Compute the order by (group, number): `position[number]`, its inverse `numbers[position]`, and each group's first
    position.

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
        position[number] = at
        numbers[at] = number


@njit(cache=True)
def _slot_of(slots, metric, high, low, wanted_metric, wanted_high, wanted_low):
    """Return the slot of a key among the wanted ones, or the free slot where it would be inserted."""
    mask = np.uint64(len(slots) - 1)
    slot = np.int64((low ^ metric) & mask)
    while True:
        wanted_index = slots[slot]
        if wanted_index < 0:
            return slot
        if (
            wanted_low[wanted_index] == low
            and wanted_high[wanted_index] == high
            and wanted_metric[wanted_index] == metric
        ):
            return slot
        slot = (slot + 1) & np.int64(mask)


@njit(cache=True, nogil=True)
def find_numbers(metric, high, low, wanted_metric, wanted_high, wanted_low, slots, numbers):
    """Fill `numbers` with the numbers of the wanted series, in ascending order; return how many there are.

    `slots` must be filled with -1, its length a power of two above the number of wanted keys. There is no permanent
    hash table of all series: scanning a million costs a query a few milliseconds, while a table would slow down
    ingestion all the time.
    """
    for wanted_index in range(len(wanted_low)):
        slot = _slot_of(
            slots,
            wanted_metric[wanted_index],
            wanted_high[wanted_index],
            wanted_low[wanted_index],
            wanted_metric,
            wanted_high,
            wanted_low,
        )
        slots[slot] = wanted_index
    found = 0
    for number in range(len(low)):
        slot = _slot_of(slots, metric[number], high[number], low[number], wanted_metric, wanted_high, wanted_low)
        if slots[slot] >= 0:
            numbers[found] = number
            found += 1
    return found
