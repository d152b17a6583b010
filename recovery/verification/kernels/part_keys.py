"""Checks that part keys are well-formed, so that other code can read them without checks."""

from numba import njit


@njit(cache=True)
def _text_end(keys, at, end):
    """The end of a text with a length prefix; -1 if it is not before `end`."""
    if at + 2 > end:
        return -1
    behind = at + 2 + (int(keys[at]) | int(keys[at + 1]) << 8)
    return behind if behind <= end else -1


@njit(cache=True)
def _is_less(keys, one, one_end, other, other_end):
    while one < one_end and other < other_end:
        if keys[one] != keys[other]:
            return keys[one] < keys[other]
        one += 1
        other += 1
    return one == one_end and other < other_end


@njit(cache=True)
def _is_canonical(keys, at, end):
    before, before_end = at, at
    is_first = True
    while at < end:
        name, name_end = at + 2, _text_end(keys, at, end)
        if name_end < 0:
            return False
        value_end = _text_end(keys, name_end, end)
        # Labels need a name and a value.
        if value_end < 0 or value_end == name_end + 2 or name_end == name:
            return False
        if not is_first and not _is_less(keys, before, before_end, name, name_end):
            return False
        before, before_end, is_first = name, name_end, False
        at = value_end
    return not is_first


@njit(cache=True, nogil=True)
def mark_malformed(keys, offsets, malformed):
    """Set `malformed[i]` to whether `keys[offsets[i] : offsets[i + 1]]` is not a label set in canonical form: its
    labels are cut off, lack a name or a value, or are not in ascending order of their names. The offsets are within
    `keys`.
    """
    for key in range(len(offsets) - 1):
        malformed[key] = not _is_canonical(keys, offsets[key], offsets[key + 1])
