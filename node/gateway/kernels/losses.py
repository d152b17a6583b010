"""Finding series that are not taken. Only requests that hold one come this way, so that it costs the others nothing.

What is given has been walked before and is sound; it is read as hostile all the same, and the walk ends at the first
field that is not.
"""

import numpy as np
from numba import njit

from strandline.wire.kernels.labels import MAX_LABELS, REWRITE, gather
from strandline.wire.kernels.protobuf import read_length, read_varint, skip_field
from strandline.wire.kernels.walk import TAG_SERIES


@njit(cache=True, nogil=True)
def find_large(data, most, spans):
    """Where the fields of series lie that take more than `most` bytes: how many, as rows (start, end) of `spans`.

    `spans` must have a row for every `most` bytes.
    """
    base = np.int64(data.ctypes.data)
    at, end, found = base, base + len(data), 0
    while at < end:
        field = at
        tag, at = read_varint(at, end)
        if at < 0:
            return found
        at = skip_field(tag, at, end)
        if at < 0:
            return found
        if tag == TAG_SERIES and at - field > most:
            spans[found, 0], spans[found, 1] = field - base, at - base
            found += 1
    return found


@njit(cache=True, nogil=True)
def find_dropped(data, limits, kinds, spans):
    """Find the first series that is dropped for each verdict, until `kinds` verdicts have theirs.

    `spans` has a row (start, end) for each verdict, which stays as it is where there is none.
    """
    max_labels, max_name, max_value = limits
    labels = np.empty((MAX_LABELS, 4), dtype=np.int64)
    seen = np.zeros(len(spans), dtype=np.bool_)
    base = np.int64(data.ctypes.data)
    at, end = base, base + len(data)
    while at < end and kinds > 0:
        tag, at = read_varint(at, end)
        if at < 0:
            return
        if tag != TAG_SERIES:
            at = skip_field(tag, at, end)
            if at < 0:
                return
            continue
        length, start = read_length(at, end)
        if start < 0:
            return
        at = start + length
        verdict, _ = gather(start, at, labels, max_labels, max_name, max_value)
        if verdict > REWRITE and not seen[verdict]:
            seen[verdict] = True
            spans[verdict, 0], spans[verdict, 1] = start - base, at - base
            kinds -= 1
