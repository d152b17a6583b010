"""Samples seen: what they do to the columns of their keys."""

from numba import njit

from strandline.index.kernels.key_table import MISSING
from strandline.index.part_columns import LIVE


@njit(cache=True, nogil=True)
def observe(part_ids, least, greatest, start, last, end, changed):
    """Apply rows of (part id, least sample time, greatest sample time) to the columns.

    `changed` is as long as the rows and gets the ids of keys whose record is another now: their start was lowered, or
    they had ended and are live again. How many it got; an id may be among them twice.
    """
    n_changed = 0
    for row in range(len(part_ids)):
        part_id = part_ids[row]
        if part_id == MISSING:
            continue
        is_changed = False
        if least[row] < start[part_id]:
            start[part_id] = least[row]
            is_changed = True
        last[part_id] = max(last[part_id], greatest[row])
        if end[part_id] != LIVE:
            end[part_id] = LIVE
            is_changed = True
        if is_changed:
            changed[n_changed] = part_id
            n_changed += 1
    return n_changed
