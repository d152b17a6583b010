"""Parses JSON lines to samples."""

import numpy as np
from numba import njit

from strandline.jobs.formats.kernels.block import (
    AT,
    DONE,
    HARD_NUMBERS,
    LINE,
    NULLS,
    RECORDS,
    SAMPLES,
    UNUSED_SERIES,
    add_bad,
    line_end,
)
from strandline.jobs.formats.kernels.json_arrays import (
    failed,
    read_times,
    read_values,
    reason_of_failure,
    without_nulls,
)
from strandline.jobs.formats.kernels.json_text import (
    CLOSE_OBJECT,
    COLON,
    COMMA,
    MAX_CHARACTER_BYTES,
    OPEN_OBJECT,
    QUOTE,
    TOO_DEEP,
    read_string,
    skip_space,
    skip_value,
)
from strandline.jobs.formats.kernels.openmetrics_series import braces_end
from strandline.jobs.formats.kernels.series_table import (
    FULL,
    UNKNOWN,
    add_group,
    bad_member,
    find_group,
    reason_of,
    series_of,
)
from strandline.jobs.formats.reasons import Reason
from strandline.jobs.kernels.label_sets import add_label
from strandline.kernels.machine import load_u8
from strandline.kernels.xxh3 import hash_at
from strandline.wire.kernels.labels import CANONICAL, MAX_LABELS

BAD_JSON, NESTED, REPEATED_KEY = int(Reason.BAD_JSON), int(Reason.TOO_DEEP), int(Reason.REPEATED_KEY)
NO_METRIC_OBJECT, BAD_METRIC_OBJECT = int(Reason.NO_METRIC_OBJECT), int(Reason.BAD_METRIC_OBJECT)
NO_ARRAYS, UNEQUAL_ARRAYS, NO_VALUE = int(Reason.NO_ARRAYS), int(Reason.UNEQUAL_ARRAYS), int(Reason.NO_VALUE)

METRIC_KEY, VALUES_KEY, TIMESTAMPS_KEY = tuple(b"metric"), tuple(b"values"), tuple(b"timestamps")
MAX_KEY_BYTES = len(TIMESTAMPS_KEY)
SMALL_SCRATCH = 64  # Room for a key or a word.
# The tokens of a line's object. Keys are bits, so that a number can represent the set of keys seen.
METRIC, VALUES, TIMESTAMPS, OTHER_KEY, OBJECT_END, NOTHING = 1, 2, 4, 8, 16, 0


@njit(cache=True)
def _is_key(start, length, key):
    if length != len(key):
        return False
    same = True
    for i in range(len(key)):
        same &= load_u8(start + i) == key[i]
    return same


@njit(cache=True)
def _read_key(at, end, free):
    """Parse a key: (key or `NOTHING`, position of its value)."""
    key, length, at, _ = read_string(at, end, free, MAX_KEY_BYTES)
    if at < 0:
        return NOTHING, at
    at = skip_space(at, end)
    if at >= end or load_u8(at) != COLON:
        return NOTHING, at
    at = skip_space(at + 1, end)
    if _is_key(key, length, METRIC_KEY):
        return METRIC, at
    if _is_key(key, length, VALUES_KEY):
        return VALUES, at
    if _is_key(key, length, TIMESTAMPS_KEY):
        return TIMESTAMPS, at
    return OTHER_KEY, at


@njit(cache=True)
def _first_key(at, end, free):
    """The first token of an object: (key, `OBJECT_END` or `NOTHING`, position after it)."""
    if load_u8(at) != OPEN_OBJECT:
        return NOTHING, at
    at = skip_space(at + 1, end)
    if at < end and load_u8(at) == CLOSE_OBJECT:
        return OBJECT_END, at + 1
    return _read_key(at, end, free)


@njit(cache=True)
def _next_key(at, end, free):
    """The token after a value, like `_first_key`."""
    at = skip_space(at, end)
    if at < end and load_u8(at) == CLOSE_OBJECT:
        return OBJECT_END, at + 1
    if at >= end or load_u8(at) != COMMA:
        return NOTHING, at
    return _read_key(skip_space(at + 1, end), end, free)


@njit(cache=True)
def _skip_other(at, end, free):
    """The position after a value that is skipped, or `failed(reason)`."""
    after = skip_value(at, end, free)
    if after == TOO_DEEP:
        return failed(NESTED)
    return after if after > 0 else failed(BAD_JSON)


@njit(cache=True)
def _metric_end(at, end):
    """The position after a metric object, or `failed(reason)`.

    Its labels are strings, so the first brace outside of quotes closes it. The content is checked once for all lines
    with the same object.
    """
    if at >= end or load_u8(at) != OPEN_OBJECT:
        return failed(NO_METRIC_OBJECT)
    after = braces_end(at, end)
    return after if after > 0 else failed(BAD_JSON)


@njit(cache=True)
def _read_metric(at, end, spans, scratch, limits, series, known, cursor):
    """The series of a metric object: its number, a bad member, or at most `FULL`."""
    free = scratch.ctypes.data
    count, names_length = 0, 0
    at = skip_space(at + 1, end)
    if load_u8(at) == CLOSE_OBJECT:
        return series_of(spans, 0, series, known, cursor)
    while True:
        free_before = free
        name, name_length, at, free = read_string(at, end, free, limits[1])
        if at < 0:
            return bad_member(BAD_JSON)
        at = skip_space(at, end)
        if at >= end or load_u8(at) != COLON:
            return bad_member(BAD_JSON)
        at = skip_space(at + 1, end)
        if at >= end or load_u8(at) != QUOTE:
            return bad_member(BAD_METRIC_OBJECT)
        value, value_length, at, free = read_string(at, end, free, limits[2])
        if at < 0:
            return bad_member(BAD_JSON)
        verdict, count, names_length = add_label(
            spans, count, names_length, name, name_length, value, value_length, limits
        )
        if verdict != CANONICAL:
            return bad_member(verdict)
        if value_length == 0:
            free = free_before  # The label is skipped, so its name is not needed.
        at = skip_space(at, end)
        if at + 1 == end and load_u8(at) == CLOSE_OBJECT:
            return series_of(spans, count, series, known, cursor)
        if at >= end or load_u8(at) != COMMA:
            return bad_member(BAD_JSON)
        at = skip_space(at + 1, end)


@njit(cache=True)
def _reason_of_parts(seen, n_values, n_times):
    """The reason if a line that is valid JSON is bad, or 0."""
    if not seen & METRIC:
        return NO_METRIC_OBJECT
    if not seen & VALUES or not seen & TIMESTAMPS:
        return NO_ARRAYS
    if n_values != n_times:
        return UNEQUAL_ARRAYS
    return 0 if n_values > 0 else NO_VALUE


@njit(cache=True, nogil=True)
def read_json_lines(base, length, state):
    """Parse lines from the cursor. Returns `DONE`, or what is full. `state` is that of a `BlockBuilder`, and `base` the
    address of its input.

    All keys are handled in this loop, because numba counts the references of array arguments in each call. For lines of
    one sample, this would cost more than everything else.
    """
    cursor, columns, series, known, groups, members, bad, limits = state
    rows, times, values = columns
    counts, examples, hard = bad
    spans = np.empty((MAX_LABELS, 4), dtype=np.int64)
    # For unescaped names and values of the maximum number of labels, and of one more.
    scratch = np.empty(
        SMALL_SCRATCH + (limits[0] + 1) * (limits[1] + limits[2] + 2 * MAX_CHARACTER_BYTES), dtype=np.uint8
    )
    free = scratch.ctypes.data
    end = base + length
    at, line, records, n_samples = base + cursor[AT], cursor[LINE], cursor[RECORDS], cursor[SAMPLES]
    need = DONE
    while at < end:
        stop = line_end(at, end)
        after = min(stop + 1, end)
        start = skip_space(at, stop)
        if start == stop:
            at = after
            line += 1
            continue
        first_hard = cursor[HARD_NUMBERS]
        metric, metric_end, n_values, n_nulls, n_times, seen = start, start, 0, 0, 0, 0
        key, position = _first_key(start, stop, free)
        while METRIC <= key <= OTHER_KEY:
            if key == METRIC:
                metric = position
                position = metric_end = _metric_end(position, stop)
            elif key == VALUES:
                n_values, n_nulls, position = read_values(
                    position, stop, base, free, n_samples, rows, values, hard, cursor
                )
            elif key == TIMESTAMPS:
                n_times, position = read_times(position, stop, n_samples, times)
            else:
                position = _skip_other(position, stop, free)
            if seen & key & ~OTHER_KEY:
                position = failed(REPEATED_KEY)
            if position < 0:
                break
            seen |= key
            key, position = _next_key(position, stop, free)
        if key == OBJECT_END and skip_space(position, stop) == stop:
            reason = _reason_of_parts(seen, n_values, n_times)
        elif position <= FULL:
            cursor[HARD_NUMBERS] = first_hard
            need = FULL - position
            break
        elif key == OBJECT_END or key == NOTHING:
            reason = BAD_JSON
        else:
            reason = reason_of_failure(position)
        if reason == 0:
            low, high = hash_at(metric, metric_end - metric)
            group = find_group(groups, low, high)
            if group == UNKNOWN:
                group = add_group(groups, members, 1, cursor, low, high)
            member = group
            if group >= 0:
                member = members[group]
                if member == UNKNOWN:
                    member = _read_metric(metric, metric_end, spans, scratch, limits, series, known, cursor)
                    if member > FULL:
                        members[group] = member
            if member <= FULL:
                cursor[HARD_NUMBERS] = first_hard
                need = FULL - member
                break
            if member < 0:
                reason = reason_of(member)
        if reason == 0:
            if n_nulls > 0:
                n_values = without_nulls(
                    n_samples, n_values, rows, times, values, hard, first_hard, cursor[HARD_NUMBERS]
                )
                cursor[NULLS] += n_nulls
                cursor[UNUSED_SERIES] |= n_values == 0
            for sample in range(n_samples, n_samples + n_values):
                rows[sample] = member
            n_samples += n_values
        else:
            cursor[HARD_NUMBERS] = first_hard
            add_bad(cursor, counts, examples, at - base, after - base, line, reason)
        records += 1
        line += 1
        at = after
    cursor[AT], cursor[LINE], cursor[RECORDS], cursor[SAMPLES] = at - base, line, records, n_samples
    return need
