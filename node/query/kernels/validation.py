"""Whether offsets lead through bytes, and whether these are part keys."""

import numpy as np
from numba import njit

from strandline.kernels.machine import load_u8


@njit(cache=True, nogil=True)
def first_invalid_key(data, offsets):
    """The first of the keys `data[offsets[i] : offsets[i + 1]]` whose lengths do not lead to its end, by pairs of a
    name and a value; -1 if all do. The offsets have been checked.
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
def are_offsets(offsets, behind):
    """Whether offsets lead from 0 to this, and never back."""
    n = len(offsets)
    if n == 0 or offsets[0] != 0 or offsets[n - 1] != behind:
        return False
    back = False
    for place in range(1, n):
        back |= offsets[place] < offsets[place - 1]
    return not back
