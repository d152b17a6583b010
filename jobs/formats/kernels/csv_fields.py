"""Where the fields of a CSV row lie.

Outside of a file that may have newlines in quoted fields (`multiline`), a row ends at the first newline, whatever is
wrong with it, and a quote inside a field that does not begin with one is an ordinary character. In such a file a row
ends at the first newline behind an even number of quotes. So rows can be found by counting quotes alone, and a quote
that is not where it should be makes its row bad.
"""

from numba import njit

from strandline.jobs.formats.kernels.block import NEWLINE, RETURN, line_end
from strandline.jobs.formats.reasons import Reason
from strandline.kernels.machine import load_u8, store_u8

OPEN_QUOTE, STRAY_QUOTE = int(Reason.OPEN_QUOTE), int(Reason.STRAY_QUOTE)
# Of a field: where its bytes begin and end, with quotes; where its text does; whether that has doubled quotes.
RAW_START, RAW_END, START, END, DOUBLED = 0, 1, 2, 3, 4
FIELD_WORDS = 5


@njit(cache=True)
def blank_end(at, end):
    """The position behind an empty line, or `at` if the line is not empty."""
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
    """The position behind a row that is bad, from a position inside of it on; `quoted` is whether the number of
    quotes before that was odd.
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
    """The position of the quote that closes a field, from its first byte on, or `end`, or that of a newline which may
    not stand there; and whether quotes inside are doubled.
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
    """Fill `fields` with a row's fields: (position behind the row, number of fields, reason why the row is bad or 0).

    Fields for which `fields` has no room are counted only.
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
def without_doubled(start, end, quote, out, most):
    """Write a field to the address `out` with one quote for each two, up to a length of `most`; its length."""
    length = 0
    while start < end and length < most:
        byte = load_u8(start)
        store_u8(out + length, byte)
        length += 1
        start += 2 if byte == quote else 1
    return length
