"""Samples seen: what they do to the columns of their keys."""

from numba import njit

from strandline.index.kernels.key_table import MISSING
from strandline.index.part_columns import LIVE


@njit(cache=True, nogil=True)
def observe(rows, least, greatest, bucket, next_number, columns, numbers, changed, newly_active):
    """Let samples count: `rows` of the columns (`MISSING` for none), the least and the greatest sample time of each.

    `columns` are start, last, end, active_in and number. `numbers`, `changed` and `newly_active` are as long as
    `rows`. `numbers` gets each one's number among the keys with a sample in the bucket; those that have their first
    there get the numbers from `next_number` on, and their places in `rows` go to `newly_active`. `changed` gets the
    rows whose record is another now: their start was lowered, or they had ended and are live again; one may be among
    them twice. How many newly active, how many changed, and how many live again there are.
    """
    start, last, end, active_in, number = columns
    n_changed = 0
    n_active = 0
    n_resumed = 0
    for place in range(len(rows)):
        row = rows[place]
        if row == MISSING:
            numbers[place] = MISSING
            continue
        is_changed = False
        if least[place] < start[row]:
            start[row] = least[place]
            is_changed = True
        last[row] = max(last[row], greatest[place])
        if end[row] != LIVE:
            end[row] = LIVE
            n_resumed += 1
            is_changed = True
        if active_in[row] != bucket:
            active_in[row] = bucket
            number[row] = next_number + n_active
            newly_active[n_active] = place
            n_active += 1
        numbers[place] = number[row]
        if is_changed:
            changed[n_changed] = row
            n_changed += 1
    return n_active, n_changed, n_resumed
