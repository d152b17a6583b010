"""Parses OpenMetrics lines to samples."""

import numpy as np
from numba import njit

from strandline.jobs.formats.kernels.block import (
    AT,
    DONE,
    FLAG,
    HARD_NUMBERS,
    LINE,
    MORE_HARD,
    MORE_SAMPLES,
    RECORDS,
    RETURN,
    SAMPLES,
    add_bad,
    add_hard,
    line_end,
    skip_blanks,
)
from strandline.jobs.formats.kernels.decimals import HARD, OUT_OF_RANGE, read_float, read_millis
from strandline.jobs.formats.kernels.openmetrics_series import BAD_LABELS, OPEN, braces_end, read_series, series_end
from strandline.jobs.formats.kernels.series_table import FULL, UNKNOWN, add_group, find_group, reason_of
from strandline.jobs.formats.reasons import Reason
from strandline.kernels.machine import load_u8
from strandline.kernels.xxh3 import hash_at
from strandline.wire.kernels.labels import MAX_LABELS

BAD_VALUE, NO_VALUE = int(Reason.BAD_VALUE), int(Reason.NO_VALUE)
BAD_TIME, TIME_OUT_OF_RANGE, NO_TIME = int(Reason.BAD_TIME), int(Reason.TIME_OUT_OF_RANGE), int(Reason.NO_TIME)
BAD_EXEMPLAR, AFTER_EOF = int(Reason.BAD_EXEMPLAR), int(Reason.AFTER_EOF)
HASH, SPACE = 0x23, 0x20
SECONDS = 3  # A second is 10**3 milliseconds.


@njit(cache=True)
def _is_eof(at, end):
    """Whether a comment is `# EOF`."""
    if end - at != 5:
        return False
    return load_u8(at + 1) == SPACE and load_u8(at + 2) == 0x45 and load_u8(at + 3) == 0x4F and load_u8(at + 4) == 0x46


@njit(cache=True)
def _is_exemplar(at, end):
    """Whether the rest of a line from its `#` is an exemplar: labels in braces, a value, and an optional time."""
    at = skip_blanks(at + 1, end)
    if at >= end or load_u8(at) != OPEN:
        return False
    at = braces_end(at, end)
    if at < 0:
        return False
    value = skip_blanks(at, end)
    _, after, _ = read_float(value, end)
    if value == at or after < 0:
        return False
    at = skip_blanks(after, end)
    if at == end:
        return True
    _, time_end = read_millis(at, end, SECONDS)
    return at > after and time_end > 0 and skip_blanks(time_end, end) == end


@njit(cache=True)
def _read_sample(at, end):
    """Parse the rest of a line after its series: (value, `EXACT` or `HARD`, its start, its end, milliseconds, reason or
    0).
    """
    start = skip_blanks(at, end)
    if start == end:
        return 0.0, 0, at, at, 0, NO_VALUE
    value, after, certainty = read_float(start, end)
    if start == at or after < 0:
        return 0.0, 0, at, at, 0, BAD_VALUE
    time = skip_blanks(after, end)
    if time == after < end:
        return 0.0, 0, at, at, 0, BAD_VALUE
    if time == end or load_u8(time) == HASH:
        return 0.0, 0, at, at, 0, NO_TIME
    millis, time_end = read_millis(time, end, SECONDS)
    if time_end < 0:
        return 0.0, 0, at, at, 0, TIME_OUT_OF_RANGE if time_end == OUT_OF_RANGE else BAD_TIME
    rest = skip_blanks(time_end, end)
    if rest < end:
        if rest == time_end:
            return 0.0, 0, at, at, 0, BAD_TIME
        if load_u8(rest) != HASH or not _is_exemplar(rest, end):
            return 0.0, 0, at, at, 0, BAD_EXEMPLAR
    return value, certainty, start, after, millis, 0


@njit(cache=True, nogil=True)
def read_lines(base, length, metric_label, state):
    """Parse lines from the cursor. Returns `DONE`, or what is full.

    `state` is that of a `BlockBuilder`, `base` the address of its input, and `metric_label` that of the text
    `__name__`.
    """
    cursor, samples, series, known, groups, members, bad, limits = state
    rows, times, values = samples
    counts, examples, hard = bad
    spans = np.empty((MAX_LABELS, 4), dtype=np.int64)
    # For unescaped names and values of the maximum number of labels, and of one more.
    longest = max(limits[1], limits[2])
    scratch = np.empty((limits[0] + 2) * (longest + limits[2] + 2), dtype=np.uint8)
    end = base + length
    at, line, records, n_samples = base + cursor[AT], cursor[LINE], cursor[RECORDS], cursor[SAMPLES]
    need = DONE
    while at < end:
        newline = line_end(at, end)
        after, stop = min(newline + 1, end), newline
        if stop > at and load_u8(stop - 1) == RETURN:
            stop -= 1
        reason = 0
        first = skip_blanks(at, stop)
        if first == stop or (load_u8(at) == HASH and not cursor[FLAG]):
            if first < stop and _is_eof(at, stop):
                cursor[FLAG] = 1
            at = after
            line += 1
            continue
        if cursor[FLAG]:
            reason = AFTER_EOF
        else:
            name_end = series_end(at, stop)
            if name_end < 0:
                reason = BAD_LABELS
        if reason == 0:
            value, certainty, start, value_end, millis, reason = _read_sample(name_end, stop)
        if reason == 0:
            if n_samples == len(times):
                need = MORE_SAMPLES
                break
            if cursor[HARD_NUMBERS] == len(hard):
                need = MORE_HARD
                break
            low, high = hash_at(at, name_end - at)
            group = find_group(groups, low, high)
            if group == UNKNOWN:
                group = add_group(groups, members, 1, cursor, low, high)
            member = group
            if group >= 0:
                member = members[group]
                if member == UNKNOWN:
                    member = read_series(at, name_end, metric_label, spans, scratch, limits, series, known, cursor)
                    if member > FULL:
                        members[group] = member
            if member <= FULL:
                need = FULL - member
                break
            if member < 0:
                reason = reason_of(member)
            else:
                rows[n_samples], times[n_samples], values[n_samples] = member, millis, value
                if certainty == HARD:
                    add_hard(cursor, hard, n_samples, start - base, value_end - start)
                n_samples += 1
        if reason != 0:
            add_bad(cursor, counts, examples, at - base, after - base, line, reason)
        records += 1
        line += 1
        at = after
    cursor[AT], cursor[LINE], cursor[RECORDS], cursor[SAMPLES] = at - base, line, records, n_samples
    return need
