"""Two runs into one."""

from numba import njit


@njit(cache=True, nogil=True)
def _compare(one, i, other, j):
    """Below, at or above 0 as series `i` of one run is below, the same as or above series `j` of the other."""
    for column in range(3):
        if one[column][i] != other[column][j]:
            return -1 if one[column][i] < other[column][j] else 1
    return 0


@njit(cache=True, nogil=True)
def _copy(time, value, start, end, to_time, to_value, at):
    to_time[at : at + end - start] = time[start:end]
    to_value[at : at + end - start] = value[start:end]
    return at + end - start


@njit(cache=True, nogil=True)
def _merge_samples(time, value, i, i_end, new_time, new_value, j, j_end, to_time, to_value, at):
    """Merge the samples of one series; where both have a time the new one counts. Where the merged ones end."""
    while i < i_end and j < j_end:
        if time[i] < new_time[j]:
            to_time[at], to_value[at] = time[i], value[i]
            i += 1
        else:
            if time[i] == new_time[j]:
                i += 1
            to_time[at], to_value[at] = new_time[j], new_value[j]
            j += 1
        at += 1
    at = _copy(time, value, i, i_end, to_time, to_value, at)
    return _copy(new_time, new_value, j, j_end, to_time, to_value, at)


@njit(cache=True, nogil=True)
def merge_two(keys, first, time, value, new_keys, new_first, new_time, new_value, to_keys, to_first, to_time, to_value):
    """Merge two runs into columns that are as long as both together; keys are (metric, key_high, key_low).

    How many series and how many samples there are.
    """
    i = j = series = at = 0
    while i < len(first) - 1 or j < len(new_first) - 1:
        if i == len(first) - 1:
            order = 1
        elif j == len(new_first) - 1:
            order = -1
        else:
            order = _compare(keys, i, new_keys, j)
        for column in range(3):
            to_keys[column][series] = keys[column][i] if order <= 0 else new_keys[column][j]
        to_first[series] = at
        if order < 0:
            at = _copy(time, value, first[i], first[i + 1], to_time, to_value, at)
        elif order > 0:
            at = _copy(new_time, new_value, new_first[j], new_first[j + 1], to_time, to_value, at)
        else:
            at = _merge_samples(
                time,
                value,
                first[i],
                first[i + 1],
                new_time,
                new_value,
                new_first[j],
                new_first[j + 1],
                to_time,
                to_value,
                at,
            )
        i += order <= 0
        j += order >= 0
        series += 1
    to_first[series] = at
    return series, at
