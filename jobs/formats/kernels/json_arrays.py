"""Parses the arrays of a JSON line: values and timestamps."""

import numpy as np
from numba import njit

from strandline.jobs.formats.kernels.block import MORE_HARD, MORE_SAMPLES, add_hard
from strandline.jobs.formats.kernels.decimals import (
    HARD,
    NORMAL_NAN,
    OUT_OF_RANGE,
    read_millis,
    scan_decimal,
    to_float,
)
from strandline.jobs.formats.kernels.json_text import (
    CLOSE_ARRAY,
    COMMA,
    LETTER_N,
    NULL,
    OPEN_ARRAY,
    QUOTE,
    is_number,
    read_string,
    skip_space,
    skip_word,
)
from strandline.jobs.formats.reasons import Reason
from strandline.kernels.bits import float_of_bits
from strandline.kernels.machine import load_u8

BAD_VALUE, BAD_JSON, NO_ARRAYS = int(Reason.BAD_VALUE), int(Reason.BAD_JSON), int(Reason.NO_ARRAYS)
BAD_TIME, TIME_OUT_OF_RANGE = int(Reason.BAD_TIME), int(Reason.TIME_OUT_OF_RANGE)
IS_NULL, IS_VALUE = -1, 0  # Stored in the column of rows until the series is known.
MAX_WORD_BYTES = 9


def _word(text):
    return int.from_bytes(text, "big")


NAN, LOWER_NAN, NULL_WORD, UPPER_NULL = (_word(text) for text in (b"NaN", b"nan", b"null", b"Null"))
INF, LOWER_INF, INFINITY, LOWER_INFINITY = (_word(text) for text in (b"Inf", b"inf", b"Infinity", b"infinity"))


@njit(cache=True)
def failed(reason):
    """The position that signals a bad record."""
    return -100 - reason


@njit(cache=True)
def reason_of_failure(position):
    """The reason of such a position."""
    return -100 - position


@njit(cache=True)
def full_column(need):
    """The position that signals a full column."""
    return -1000 - need


@njit(cache=True)
def _special(start, length):
    """Parse a value that is a string: (value, whether it is null, whether it is valid).

    VictoriaMetrics writes "Infinity" and "-Infinity", and null for NaN. It reads the other spellings as well.
    """
    negative = length > 0 and load_u8(start) == 0x2D
    word = 0
    if length <= MAX_WORD_BYTES:
        for i in range(negative, length):
            word = (word << 8) | np.int64(load_u8(start + i))
    if length - negative <= 8:
        if word == INFINITY or word == LOWER_INFINITY or word == INF or word == LOWER_INF:
            return -np.inf if negative else np.inf, False, True
        if word == NAN or word == LOWER_NAN:
            return float_of_bits(NORMAL_NAN), False, True
        if word == NULL_WORD or word == UPPER_NULL:
            return 0.0, True, True
    return 0.0, False, False


@njit(cache=True)
def _next(at, end):
    """After an element: (position of the next one, False), or (position after the array, True) at its end. The position
    is `failed(BAD_JSON)` if there is neither a comma nor the end of the array.
    """
    at = skip_space(at, end)
    if at < end and load_u8(at) == COMMA:
        return skip_space(at + 1, end), False
    if at < end and load_u8(at) == CLOSE_ARRAY:
        return at + 1, True
    return failed(BAD_JSON), True


@njit(cache=True)
def _first(at, end):
    """Like `_next`, for the first element of an array."""
    if at >= end or load_u8(at) != OPEN_ARRAY:
        return failed(NO_ARRAYS), True
    at = skip_space(at + 1, end)
    if at < end and load_u8(at) == CLOSE_ARRAY:
        return at + 1, True
    return at, False


@njit(cache=True)
def read_values(at, end, base, free, index, rows, values, hard, cursor):
    """Parse an array of values to the columns from `index`: (number of values, of nulls, position after it).

    `rows` is set to `IS_NULL` or `IS_VALUE`. There must be room for a word at the address `free`.
    """
    count, nulls = 0, 0
    at, ended = _first(at, end)
    while not ended:
        if index + count == len(values):
            return count, nulls, full_column(MORE_SAMPLES)
        if at >= end:
            return count, nulls, failed(BAD_JSON)
        byte = load_u8(at)
        kind, value = IS_VALUE, 0.0
        if byte == QUOTE:
            start, length, at, _ = read_string(at, end, free, MAX_WORD_BYTES)
            if at < 0:
                return count, nulls, failed(BAD_JSON)
            value, is_null, is_valid = _special(start, length)
            if not is_valid:
                return count, nulls, failed(BAD_VALUE)
            kind = IS_NULL if is_null else IS_VALUE
        elif byte == LETTER_N:
            at = skip_word(at, end, NULL)
            if at < 0:
                return count, nulls, failed(BAD_VALUE)
            kind = IS_NULL
        else:
            mantissa, power, negative, dropped, after = scan_decimal(at, end)
            if after < 0 or not is_number(at, after):
                return count, nulls, failed(BAD_VALUE)
            value, certainty = to_float(mantissa, power, negative, dropped)
            if certainty == HARD and not add_hard(cursor, hard, index + count, at - base, after - at):
                return count, nulls, full_column(MORE_HARD)
            at = after
        rows[index + count], values[index + count] = kind, value
        nulls += kind == IS_NULL
        count += 1
        at, ended = _next(at, end)
    return count, nulls, at


@njit(cache=True)
def read_times(at, end, index, times):
    """Parse an array of timestamps to the column from `index`: (number of timestamps, position after it)."""
    count = 0
    at, ended = _first(at, end)
    while not ended:
        if index + count == len(times):
            return count, full_column(MORE_SAMPLES)
        millis, after = read_millis(at, end, 0)
        if after == OUT_OF_RANGE:
            return count, failed(TIME_OUT_OF_RANGE)
        if after < 0 or not is_number(at, after):
            return count, failed(BAD_TIME)
        times[index + count] = millis
        count += 1
        at, ended = _next(after, end)
    return count, at


@njit(cache=True)
def without_nulls(index, count, rows, times, values, hard, first_hard, n_hard):
    """Remove null values from the columns. Returns the number of values left."""
    kept = index
    for sample in range(index, index + count):
        if rows[sample] == IS_NULL:
            continue
        if first_hard < n_hard and hard[first_hard, 0] == sample:
            hard[first_hard, 0] = kept
            first_hard += 1
        times[kept], values[kept] = times[sample], values[sample]
        kept += 1
    return kept - index
