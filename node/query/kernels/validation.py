"""Checks of columns that a process has received: offsets and part keys."""

import numpy as np
from numba import njit

from strandline.kernels.machine import load_u8


@njit(cache=True, nogil=True)
def first_invalid_key(data, offsets):
    """The first of the keys `data[offsets[i] : offsets[i + 1]]` that is not a sequence of names and values with their
    lengths; -1 if all are. The offsets must be valid.
    """
    base = np.int64(data.ctypes.data)
    for key in range(len(offsets) - 1):
        at, end = base + offsets[key], base + offsets[key + 1]
        while at < end:
            for _ in range(2):
                if at + 2 > end:
                    return key
                at += 2 + (int(load_u8(at)) | int(load_u8(at + 1)) << 8)
        if at != end:
            return key
    return -1


@njit(cache=True, nogil=True)
def are_offsets(offsets, end):
    """Whether offsets ascend from 0 to `end`."""
    n = len(offsets)
    if n == 0 or offsets[0] != 0 or offsets[n - 1] != end:
        return False
    descends = False
    for i in range(1, n):
        descends |= offsets[i] < offsets[i - 1]
    return not descends
