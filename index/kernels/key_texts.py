"""Names and values in one part key: for each label the name's length as u16, the name, the value's length as u16, the
value. The index has checked its keys when they came; all the same no length leads past the end.
"""

import numpy as np
from numba import njit


@njit(cache=True)
def _behind_text(key, at):
    """Where the text ends whose length stands there, or behind the key if that is cut off."""
    if at + 2 > len(key):
        return len(key) + 1
    return at + 2 + (np.int64(key[at]) | np.int64(key[at + 1]) << 8)


@njit(cache=True, nogil=True)
def names_of_key(key, names, ends):
    """Write the names one behind the other, and where each ends; how many there are, or -1 if the key is cut off."""
    at, count, written = 0, 0, 0
    while at < len(key):
        behind = _behind_text(key, at)
        following = _behind_text(key, behind)
        if following > len(key):
            return -1
        for place in range(at + 2, behind):
            names[written] = key[place]
            written += 1
        ends[count] = written
        count += 1
        at = following
    return count


@njit(cache=True, nogil=True)
def value_of_key(key, name):
    """Where the value of a label starts and ends; twice 0 if there is no such label, twice -1 if the key is cut off."""
    at = 0
    while at < len(key):
        behind = _behind_text(key, at)
        following = _behind_text(key, behind)
        if following > len(key):
            return -1, -1
        if behind - at - 2 == len(name):
            same = True
            for place in range(len(name)):
                same &= key[at + 2 + place] == name[place]
            if same:
                return behind + 2, following
        at = following
    return 0, 0
