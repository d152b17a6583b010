"""Splits CSV rows into fields.

Without `multiline` (newlines in quoted fields), a row ends at the first newline, even if it is bad, and a quote inside
a field that does not begin with one is an ordinary character. With `multiline`, a row ends at the first newline after
an even number of quotes. Rows can therefore be found by counting quotes alone, and a quote in a wrong position makes
its row bad.
"""

from numba import njit

from strandline.jobs.formats.kernels.block import NEWLINE, RETURN, line_end
from strandline.jobs.formats.reasons import Reason
from strandline.kernels.machine import load_u8, store_u8

OPEN_QUOTE, STRAY_QUOTE = int(Reason.OPEN_QUOTE), int(Reason.STRAY_QUOTE)
# Columns of a field: start and end of its bytes including quotes; of its text; whether it has doubled quotes.
RAW_START, RAW_END, START, END, DOUBLED = 0, 1, 2, 3, 4
FIELD_WORDS = 5


@njit(cache=True)
def blank_end(at, end):
    """The position after an empty line, or `at` if the line is not empty."""
    if at < end and load_u8(at) == NEWLINE:
        return at + 1
    if at < end and load_u8(at) == RETURN:
        if at + 1 == end:
            return end
        if load_u8(at + 1) == NEWLINE:
            return at + 2
    return at


@njit(cache=True)
def _row_end(at, end, quote, multiline, quoted):
    """The position after a bad row, from a position inside it. `quoted` is whether the number of quotes before that
    position is odd.
    """
    if not multiline:
        return min(line_end(at, end) + 1, end)
    while at < end:
        byte = load_u8(at)
        at += 1
        if byte == quote:
            quoted = not quoted
        elif byte == NEWLINE and not quoted:
            return at
    return at


@njit(cache=True)
def _quoted_end(at, end, quote, multiline):
    """The position of a field's closing quote, or of a newline that is not permitted, or `end`; and whether the field
    has doubled quotes.
    """
    doubled = False
    while at < end:
        byte = load_u8(at)
        if byte == quote:
            if at + 1 == end or load_u8(at + 1) != quote:
                return at, doubled
            doubled = True
            at += 1
        elif byte == NEWLINE and not multiline:
            return at, doubled
        at += 1
    return end, doubled


@njit(cache=True)
def split_row(at, end, delimiter, quote, multiline, fields):
    """Fill `fields` with the fields of a row: (position after the row, number of fields, reason if the row is bad or
    0).

    Fields beyond the length of `fields` are only counted.
    """
    count, room = 0, len(fields)
    while True:
        raw_start, doubled = at, False
        if at < end and load_u8(at) == quote:
            start = at + 1
            at, doubled = _quoted_end(start, end, quote, multiline)
            if at >= end or load_u8(at) != quote:
                return min(at + 1, end), count, OPEN_QUOTE
            stop = at
            at += 1
            raw_end = at
            if at < end and load_u8(at) == RETURN and (at + 1 == end or load_u8(at + 1) == NEWLINE):
                at += 1
            elif at < end and load_u8(at) != delimiter and load_u8(at) != NEWLINE:
                return _row_end(at, end, quote, multiline, False), count, STRAY_QUOTE
        else:
            start = at
            while at < end:
                byte = load_u8(at)
                if byte == delimiter or byte == NEWLINE:
                    break
                if multiline and byte == quote:
                    return _row_end(at, end, quote, multiline, False), count, STRAY_QUOTE
                at += 1
            stop = at
            if (at == end or load_u8(at) == NEWLINE) and stop > start and load_u8(stop - 1) == RETURN:
                stop -= 1
            raw_end = stop
        if count < room:
            fields[count, RAW_START], fields[count, RAW_END] = raw_start, raw_end
            fields[count, START], fields[count, END], fields[count, DOUBLED] = start, stop, doubled
        count += 1
        if at >= end or load_u8(at) != delimiter:
            return min(at + 1, end), count, 0
        at += 1


@njit(cache=True)
def without_doubled(start, end, quote, out, max_length):
    """Write a field to the address `out` with its doubled quotes halved, up to `max_length`. Returns the length."""
    length = 0
    while start < end and length < max_length:
        byte = load_u8(start)
        store_u8(out + length, byte)
        length += 1
        start += 2 if byte == quote else 1
    return length
