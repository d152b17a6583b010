"""Parses the series of an OpenMetrics line: its end, and its labels."""

from numba import njit

from strandline.jobs.formats.kernels.block import SPACE, TAB, skip_blanks
from strandline.jobs.formats.kernels.series_table import bad_member, series_of
from strandline.jobs.formats.reasons import Reason
from strandline.jobs.kernels.label_sets import add_label
from strandline.kernels.machine import load_u8, store_u8
from strandline.wire.kernels.labels import CANONICAL

BAD_METRIC, BAD_LABELS, NO_METRIC = int(Reason.BAD_METRIC), int(Reason.BAD_LABELS), int(Reason.NO_METRIC)
BAD = -1
OPEN, CLOSE, QUOTE, BACKSLASH, EQUALS, COMMA, COLON, UNDERSCORE, LETTER_N = tuple(b'{}"\\=,:_n')
NEWLINE = 0x0A


@njit(cache=True)
def series_end(at, end):
    """The position after a metric name and its labels in braces, or `BAD` if the braces are not closed."""
    while at < end and load_u8(at) != OPEN:
        if load_u8(at) == SPACE or load_u8(at) == TAB:
            return at
        at += 1
    return at if at == end else braces_end(at, end)


@njit(cache=True)
def braces_end(at, end):
    """The position after the brace that closes the one at `at`, or `BAD`. Braces in quotes do not count."""
    quoted = False
    at += 1
    while at < end:
        byte = load_u8(at)
        at += 1
        if byte == QUOTE:
            quoted = not quoted
        elif quoted:
            # The byte after a backslash is never a closing quote.
            at += byte == BACKSLASH
        elif byte == CLOSE:
            return at
    return BAD


@njit(cache=True)
def _name_end(at, end, colons):
    """The position after a name that is not quoted: letters, digits and underscores, and colons if permitted. A name
    that begins with a digit is empty.
    """
    start = at
    while at < end:
        byte = load_u8(at)
        letter = byte | 0x20
        if not (0x61 <= letter <= 0x7A or byte == UNDERSCORE or (byte == COLON and colons)) and not (
            0x30 <= byte <= 0x39 and at > start
        ):
            break
        at += 1
    return at


@njit(cache=True)
def _quoted(at, end, free, max_length):
    """Parse a text at its quote: (start, length, position after it or `BAD`, next `free`).

    A text with escapes is written to the address `free`. One that is longer than `max_length` is truncated to
    `max_length + 1` bytes. A backslash before any other character is an ordinary character.
    """
    if at >= end or load_u8(at) != QUOTE:
        return at, 0, BAD, free
    at += 1
    start = at
    while at < end and load_u8(at) != QUOTE and load_u8(at) != BACKSLASH:
        at += 1
    if at < end and load_u8(at) == QUOTE:
        return start, at - start, at + 1, free
    length = 0
    at = start
    while at < end and load_u8(at) != QUOTE:
        byte = load_u8(at)
        at += 1
        if byte == BACKSLASH and at < end:
            escaped = load_u8(at)
            if escaped == QUOTE or escaped == BACKSLASH:
                byte = escaped
                at += 1
            elif escaped == LETTER_N:
                byte = NEWLINE
                at += 1
        if length <= max_length:
            store_u8(free + length, byte)
            length += 1
    return free, length, at + 1 if at < end else BAD, free + length


@njit(cache=True)
def read_series(at, end, metric_label, spans, scratch, limits, series, known, cursor):
    """The series of a text: its number, a bad member, or at most `FULL`.

    `metric_label` is the address of the text `__name__`. In braces, a quoted text without a following `=` is the name
    of the metric.
    """
    free = scratch.ctypes.data
    max_name, max_value = limits[1], limits[2]
    count, names_length, named = 0, 0, False
    after = _name_end(at, end, True)
    if after > at:
        verdict, count, names_length = add_label(spans, 0, 0, metric_label, 8, at, after - at, limits)
        if verdict != CANONICAL:
            return bad_member(verdict)
        named = True
        at = after
    if at == end:
        return series_of(spans, count, series, known, cursor) if named else bad_member(NO_METRIC)
    if load_u8(at) != OPEN:
        return bad_member(BAD_METRIC)
    at = skip_blanks(at + 1, end)
    while at < end and load_u8(at) != CLOSE:
        free_before = free
        if load_u8(at) == QUOTE:
            # It may be the name of the metric, which is a label value.
            name, name_length, at, free = _quoted(at, end, free, max(max_name, max_value))
            if at < 0:
                return bad_member(BAD_LABELS)
            at = skip_blanks(at, end)
            if at < end and load_u8(at) != EQUALS:
                if named:
                    return bad_member(BAD_LABELS)
                if name_length == 0:
                    return bad_member(NO_METRIC)
                named = True
                verdict, count, names_length = add_label(
                    spans, count, names_length, metric_label, 8, name, name_length, limits
                )
                if verdict != CANONICAL:
                    return bad_member(verdict)
                if load_u8(at) == COMMA:
                    at = skip_blanks(at + 1, end)
                elif load_u8(at) != CLOSE:
                    return bad_member(BAD_LABELS)
                continue
        else:
            name, name_length = at, _name_end(at, end, False) - at
            if name_length == 0:
                return bad_member(BAD_LABELS)
            at = skip_blanks(at + name_length, end)
        if at >= end or load_u8(at) != EQUALS:
            return bad_member(BAD_LABELS)
        value, value_length, at, free = _quoted(skip_blanks(at + 1, end), end, free, max_value)
        if at < 0:
            return bad_member(BAD_LABELS)
        verdict, count, names_length = add_label(
            spans, count, names_length, name, name_length, value, value_length, limits
        )
        if verdict != CANONICAL:
            return bad_member(verdict)
        if value_length == 0:
            free = free_before  # The label is skipped, so its name is not needed.
        at = skip_blanks(at, end)
        if at < end and load_u8(at) == COMMA:
            at = skip_blanks(at + 1, end)
        elif at >= end or load_u8(at) != CLOSE:
            return bad_member(BAD_LABELS)
    if at + 1 != end:
        return bad_member(BAD_LABELS)
    return series_of(spans, count, series, known, cursor) if named else bad_member(NO_METRIC)
