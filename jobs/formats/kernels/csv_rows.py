"""Parses CSV rows to samples."""

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
    NEWLINE,
    RECORDS,
    SAMPLES,
    UNUSED_SERIES,
    add_bad,
    add_hard,
)
from strandline.jobs.formats.kernels.clock_times import read_pattern, read_rfc3339
from strandline.jobs.formats.kernels.csv_fields import (
    DOUBLED,
    END,
    FIELD_WORDS,
    RAW_END,
    RAW_START,
    START,
    blank_end,
    split_row,
    without_doubled,
)
from strandline.jobs.formats.kernels.decimals import HARD, OUT_OF_RANGE, read_float, read_millis
from strandline.jobs.formats.kernels.series_table import (
    FULL,
    UNKNOWN,
    add_group,
    bad_member,
    find_group,
    has_metric,
    reason_of,
    series_of,
)
from strandline.jobs.formats.reasons import Reason
from strandline.jobs.kernels.label_sets import add_label
from strandline.kernels.machine import load_u8
from strandline.kernels.xxh3 import hash_at
from strandline.wire.kernels.labels import CANONICAL, MAX_LABELS

U64 = np.uint64
TOO_FEW_COLUMNS, TOO_MANY_COLUMNS = int(Reason.TOO_FEW_COLUMNS), int(Reason.TOO_MANY_COLUMNS)
BAD_VALUE, NO_VALUE, NO_METRIC = int(Reason.BAD_VALUE), int(Reason.NO_VALUE), int(Reason.NO_METRIC)
BAD_TIME, TIME_OUT_OF_RANGE = int(Reason.BAD_TIME), int(Reason.TIME_OUT_OF_RANGE)

UNIX, RFC3339, PATTERN = 0, 1, 2  # Kinds of times.
CONSTANT, METRIC = -1, -2  # As the column of a label: a constant, or the metric.
# Columns of a label in the plan: column, start and length of its name, start and length of its constant.
PLAN_WORDS = 5
ABSENT, PRESENT, UNDECIDED = 0, 1, 2  # States of a value in its row; the last one is a hard number.


@njit(cache=True)
def _time_of(fields, column, kind, shift, clock):
    """Parse the time of a row: (milliseconds, reason if it is invalid or 0)."""
    start, end = fields[column, START], fields[column, END]
    if kind == UNIX:
        millis, after = read_millis(start, end, shift)
    elif kind == RFC3339:
        millis, after = read_rfc3339(start, end)
    else:
        steps, breaks, offsets, covered = clock
        millis, after = read_pattern(start, end, steps, breaks, offsets, covered[0], covered[1])
    if after == OUT_OF_RANGE:
        return 0, TIME_OUT_OF_RANGE
    return millis, 0 if after == end else BAD_TIME


@njit(cache=True)
def _values_of(fields, value_columns, numbers, states):
    """Parse the values of a row to `numbers` and `states`. Returns the reason if the row is bad, or 0."""
    present = 0
    for place in range(len(value_columns)):
        column = value_columns[place]
        start, end = fields[column, START], fields[column, END]
        states[place] = ABSENT
        if start == end:
            continue
        value, after, certainty = read_float(start, end)
        if after != end:
            return BAD_VALUE
        numbers[place], states[place] = value, UNDECIDED if certainty == HARD else PRESENT
        present += 1
    return 0 if present else NO_VALUE


@njit(cache=True)
def _identity(fields, runs, hashes):
    """The hash of the columns that identify a row's series. A run of adjacent columns is hashed with the delimiters
    between them.
    """
    low, high = U64(0), U64(0)
    for run in range(len(runs)):
        start, end = fields[runs[run, 0], RAW_START], fields[runs[run, 1], RAW_END]
        low, high = hash_at(start, end - start)
        hashes[2 * run], hashes[2 * run + 1] = low, high
    if len(runs) > 1:
        low, high = hash_at(hashes.ctypes.data, 16 * len(runs))
    return low, high


@njit(cache=True)
def _member(fields, value, quote, labels, texts, spans, scratch, limits, series, known, cursor):
    """The series of a value: its number, a bad member, or at most `FULL`.

    The labels of the plan are sorted by name, so that `add_label` appends.
    """
    plan, metric_columns, metric_spans = labels
    text = texts.ctypes.data
    free, max_length = scratch.ctypes.data, limits[2] + 1
    count, names_length = 0, 0
    for i in range(len(plan)):
        column, at, length = plan[i, 0], text + plan[i, 3], plan[i, 4]
        if column == METRIC:
            column, at, length = metric_columns[value], text + metric_spans[value, 0], metric_spans[value, 1]
        if column >= 0:
            at, length = fields[column, START], fields[column, END] - fields[column, START]
            if fields[column, DOUBLED]:
                length = without_doubled(at, fields[column, END], quote, free, max_length)
                at = free
                free += length
        verdict, count, names_length = add_label(
            spans, count, names_length, text + plan[i, 1], plan[i, 2], at, length, limits
        )
        if verdict != CANONICAL:
            return bad_member(verdict)
    if not has_metric(spans, count):
        return bad_member(NO_METRIC)
    return series_of(spans, count, series, known, cursor)


@njit(cache=True)
def _newlines(at, end):
    count = 0
    while at < end:
        count += load_u8(at) == NEWLINE
        at += 1
    return count


@njit(cache=True, nogil=True)
def read_rows(base, length, state, marks, time, clock, columns, labels, texts):
    """Parse rows from the cursor. Returns `DONE`, or what is full.

    `state` is that of a `BlockBuilder`, and `base` the address of its input. `marks` are delimiter, quote, whether rows
    may span lines, and the number of columns; `time` is the column of the time, its kind and the shift of its unit;
    `columns` are those of the values, and the runs that identify a series.
    """
    cursor, samples, series, known, groups, members, bad, limits = state
    delimiter, quote, multiline, n_columns = marks
    time_column, kind, shift = time
    value_columns, runs = columns
    rows, times, values = samples
    counts, examples, hard = bad
    n_values = len(value_columns)
    fields = np.empty((n_columns, FIELD_WORDS), dtype=np.int64)
    numbers, states = np.empty(n_values, dtype=np.float64), np.empty(n_values, dtype=np.int64)
    hashes = np.empty(2 * len(runs) + 1, dtype=np.uint64)
    spans = np.empty((MAX_LABELS, 4), dtype=np.int64)
    scratch = np.empty(len(labels[0]) * (limits[2] + 1), dtype=np.uint8)
    end = base + length
    at, line, records, n_samples = base + cursor[AT], cursor[LINE], cursor[RECORDS], cursor[SAMPLES]
    need = DONE
    while at < end:
        after = blank_end(at, end)
        if after > at:
            at = after
            line += 1
            continue
        after, n_fields, reason = split_row(at, end, delimiter, quote, multiline != 0, fields)
        if cursor[FLAG]:
            cursor[FLAG] = 0
            line += _newlines(at, after)
            at = after
            continue
        millis = 0
        if reason == 0 and n_fields != n_columns:
            reason = TOO_FEW_COLUMNS if n_fields < n_columns else TOO_MANY_COLUMNS
        if reason == 0:
            millis, reason = _time_of(fields, time_column, kind, shift, clock)
        if reason == 0:
            reason = _values_of(fields, value_columns, numbers, states)
        if reason == 0:
            if n_samples + n_values > len(times):
                need = MORE_SAMPLES
                break
            if cursor[HARD_NUMBERS] + n_values > len(hard):
                need = MORE_HARD
                break
            low, high = _identity(fields, runs, hashes)
            group = find_group(groups, low, high)
            if group == UNKNOWN:
                group = add_group(groups, members, n_values, cursor, low, high)
            member = group
            if group >= 0:
                # Only counted below, if all series of the row are valid.
                place = n_samples
                for value in range(n_values):
                    if states[value] == ABSENT:
                        continue
                    member = members[group * n_values + value]
                    if member == UNKNOWN:
                        member = _member(
                            fields, value, quote, labels, texts, spans, scratch, limits, series, known, cursor
                        )
                        if member > FULL:
                            members[group * n_values + value] = member
                    if member < 0:
                        break
                    rows[place], times[place], values[place] = member, millis, numbers[value]
                    place += 1
            if member <= FULL:
                need = FULL - member
                break
            if member < 0:
                reason = reason_of(member)
                cursor[UNUSED_SERIES] = 1
        if reason == 0:
            for value in range(n_values):
                if states[value] == UNDECIDED:
                    column = value_columns[value]
                    start = fields[column, START]
                    add_hard(cursor, hard, n_samples, start - base, fields[column, END] - start)
                n_samples += states[value] != ABSENT
        else:
            add_bad(cursor, counts, examples, at - base, after - base, line, reason)
        records += 1
        line += _newlines(at, after) if multiline else 1
        at = after
    cursor[AT], cursor[LINE], cursor[RECORDS], cursor[SAMPLES] = at - base, line, records, n_samples
    return need
