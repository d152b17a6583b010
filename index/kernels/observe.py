"""Applies samples to the columns of their keys."""

from numba import njit

from strandline.index.kernels.key_table import MISSING
from strandline.index.part_columns import LIVE


@njit(cache=True, nogil=True)
def observe(rows, least, greatest, bucket, next_number, columns, numbers, changed, newly_active):
    """Apply samples: `rows` of the columns (`MISSING` for none), with the minimum and maximum sample time of each.

    `columns` are start, last, end, active_in and number. `numbers`, `changed` and `newly_active` are as long as `rows`.
    `numbers` gets each key's number among the keys with a sample in the bucket; those with their first sample there get
    the numbers from `next_number`, and their indices in `rows` go to `newly_active`. `changed` gets the rows whose
    record has changed, because their start was lowered or an ended key is live again; a row may be there twice. Returns
    the numbers of newly active, changed, and resumed keys.
    """
    start, last, end, active_in, number = columns
    n_changed = 0
    n_active = 0
    n_resumed = 0
    for position in range(len(rows)):
        row = rows[position]
        if row == MISSING:
            numbers[position] = MISSING
            continue
        is_changed = False
        if least[position] < start[row]:
            start[row] = least[position]
            is_changed = True
        last[row] = max(last[row], greatest[position])
        if end[row] != LIVE:
            end[row] = LIVE
            n_resumed += 1
            is_changed = True
        if active_in[row] != bucket:
            active_in[row] = bucket
            number[row] = next_number + n_active
            newly_active[n_active] = position
            n_active += 1
        numbers[position] = number[row]
        if is_changed:
            changed[n_changed] = row
            n_changed += 1
    return n_active, n_changed, n_resumed
