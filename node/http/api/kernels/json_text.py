"""Labels and lists as JSON, from columns of part keys, terms and samples.

Text is passed on as UTF-8. A byte that belongs to no character becomes U+FFFD, so that what is written is always JSON.
"""

import numpy as np
from numba import njit

from strandline.node.http.api.kernels.decimals import LONGEST_TIME, LONGEST_VALUE, write_time, write_value

# What surrounds the labels of a series, at the most, and what a point takes: brackets, comma, quotes.
SERIES_FRAME = 64
POINT_FRAME = LONGEST_TIME + LONGEST_VALUE + 8
# An escaped byte at the most: \u00xx.
WIDEST = 6

QUOTE, BACKSLASH, COMMA, COLON = np.uint8(34), np.uint8(92), np.uint8(44), np.uint8(58)
OPEN, CLOSE, OPEN_LIST, CLOSE_LIST = np.uint8(123), np.uint8(125), np.uint8(91), np.uint8(93)
HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
METRIC = np.frombuffer(b'{"metric":', dtype=np.uint8)
VALUE = np.frombuffer(b',"value":', dtype=np.uint8)
VALUES = np.frombuffer(b',"values":[', dtype=np.uint8)
# What stands behind a backslash for a control character; 0 for those that have only their number.
SHORT = np.zeros(32, dtype=np.uint8)
SHORT[[8, 9, 10, 12, 13]] = np.frombuffer(b"btnfr", dtype=np.uint8)
# What is written as it is.
PLAIN = np.zeros(256, dtype=np.bool_)
PLAIN[0x20:0x80] = True
PLAIN[[QUOTE, BACKSLASH]] = False


@njit(cache=True)
def _character(data, at, end):
    """How many bytes the character at a place has, which is not ASCII; 0 if there is none."""
    first = data[at]
    if 0xC2 <= first <= 0xDF:
        length = 2
    elif 0xE0 <= first <= 0xEF:
        length = 3
    elif 0xF0 <= first <= 0xF4:
        length = 4
    else:
        return 0
    if at + length > end:
        return 0
    for place in range(at + 1, at + length):
        if data[place] & 0xC0 != 0x80:
            return 0
    second = data[at + 1]
    # Too long for what it says, half of a surrogate pair, or beyond the last character.
    if (
        (first == 0xE0 and second < 0xA0)
        or (first == 0xED and second > 0x9F)
        or (first == 0xF0 and second < 0x90)
        or (first == 0xF4 and second > 0x8F)
    ):
        return 0
    return length


@njit(cache=True)
def write_string(data, start, end, out, at):
    """The text `data[start:end]` in quotes."""
    out[at] = QUOTE
    at += 1
    place = start
    while place < end:
        byte = data[place]
        if PLAIN[byte]:
            out[at] = byte
            at += 1
            place += 1
            continue
        if byte >= 0x80:
            length = _character(data, place, end)
            if length == 0:
                out[at], out[at + 1], out[at + 2] = 0xEF, 0xBF, 0xBD
                at += 3
                place += 1
            for _ in range(length):
                out[at] = data[place]
                at += 1
                place += 1
            continue
        if byte == QUOTE or byte == BACKSLASH:
            out[at] = BACKSLASH
            out[at + 1] = byte
            at += 2
        else:
            out[at] = BACKSLASH
            if SHORT[byte] != 0:
                out[at + 1] = SHORT[byte]
                at += 2
            else:
                out[at + 1], out[at + 2], out[at + 3] = 117, 48, 48
                out[at + 4], out[at + 5] = HEX[byte >> 4], HEX[byte & 15]
                at += 6
        place += 1
    out[at] = QUOTE
    return at + 1


@njit(cache=True)
def write_labels(data, start, end, out, at):
    """The part key `data[start:end]` as an object."""
    out[at] = OPEN
    at += 1
    place = start
    while place < end:
        if place > start:
            out[at] = COMMA
            at += 1
        length = np.int64(data[place]) | np.int64(data[place + 1]) << 8
        at = write_string(data, place + 2, place + 2 + length, out, at)
        out[at] = COLON
        at += 1
        place += 2 + length
        length = np.int64(data[place]) | np.int64(data[place + 1]) << 8
        at = write_string(data, place + 2, place + 2 + length, out, at)
        place += 2 + length
    out[at] = CLOSE
    return at + 1


@njit(cache=True)
def _write_text(text, out, at):
    for byte in text:
        out[at] = byte
        at += 1
    return at


@njit(cache=True)
def write_point(time, bits, out, at):
    """A list of a time and a value, which is given by its bits."""
    out[at] = OPEN_LIST
    at = write_time(time, out, at + 1)
    out[at] = COMMA
    out[at + 1] = QUOTE
    at = write_value(bits, out, at + 2)
    out[at] = QUOTE
    out[at + 1] = CLOSE_LIST
    return at + 2


@njit(cache=True, nogil=True)
def write_terms(offsets, data, first, behind, out):
    """Terms from place `first` on up to, not including, `behind`, as strings, each with a comma behind it."""
    at = 0
    for term in range(first, behind):
        at = write_string(data, offsets[term], offsets[term + 1], out, at)
        out[at] = COMMA
        at += 1
    return at


@njit(cache=True, nogil=True)
def write_series(offsets, data, first, behind, out):
    """Part keys as objects, each with a comma behind it."""
    at = 0
    for key in range(first, behind):
        at = write_labels(data, offsets[key], offsets[key + 1], out, at)
        out[at] = COMMA
        at += 1
    return at


@njit(cache=True, nogil=True)
def write_vector(offsets, data, time, bits, first, behind, out):
    """Series with one point each, at one time, each with a comma behind it."""
    at = 0
    for key in range(first, behind):
        at = _write_text(METRIC, out, at)
        at = write_labels(data, offsets[key], offsets[key + 1], out, at)
        at = _write_text(VALUE, out, at)
        at = write_point(time, bits[key], out, at)
        out[at] = CLOSE
        out[at + 1] = COMMA
        at += 2
    return at


@njit(cache=True, nogil=True)
def write_matrix(offsets, data, first_point, time, bits, first, behind, out):
    """Series with their points, at least one each, each with a comma behind it."""
    at = 0
    for key in range(first, behind):
        at = _write_text(METRIC, out, at)
        at = write_labels(data, offsets[key], offsets[key + 1], out, at)
        at = _write_text(VALUES, out, at)
        for point in range(first_point[key], first_point[key + 1]):
            at = write_point(time[point], bits[point], out, at)
            out[at] = COMMA
            at += 1
        out[at - 1] = CLOSE_LIST
        out[at] = CLOSE
        out[at + 1] = COMMA
        at += 2
    return at
