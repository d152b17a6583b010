"""Finds the rows of part ids in columns that are sorted by part id."""

from numba import njit


@njit(cache=True, nogil=True)
def rows_of_ids(sorted_ids, wanted, rows):
    """Fill `rows` with the position of each wanted id among sorted ones, -1 if there is none. The wanted ids are
    ascending.

    Each search starts where the previous one ended and doubles its steps, so few ids cost one search each, and many ids
    one pass.
    """
    n_ids = len(sorted_ids)
    at = 0
    for position in range(len(wanted)):
        part_id = wanted[position]
        step = 1
        low = at
        while at < n_ids and sorted_ids[at] < part_id:
            low = at + 1
            at += step
            step *= 2
        high = min(at, n_ids)
        while low < high:
            middle = (low + high) // 2
            if sorted_ids[middle] < part_id:
                low = middle + 1
            else:
                high = middle
        at = low
        rows[position] = low if low < n_ids and sorted_ids[low] == part_id else -1
