"""Labels and lists as JSON, from columns of part keys, terms and samples.

Text is passed on as UTF-8. A byte that belongs to no character becomes U+FFFD, so that what is written is always JSON.
"""

import numpy as np
from numba import njit

from strandline.kernels.machine import load_u8, load_u64, store_u8, store_u64
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
# The same byte eight times: for a look at eight bytes at once.
ONES, TOPS, SPACES = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080), np.uint64(0x2020202020202020)
QUOTES, BACKSLASHES = np.uint64(0x2222222222222222), np.uint64(0x5C5C5C5C5C5C5C5C)


@njit(cache=True, nogil=True, inline="always")
def _are_plain(word):
    """Whether eight bytes are written as they are. It may say no of some that are."""
    quotes, backslashes = word ^ QUOTES, word ^ BACKSLASHES
    marks = ((quotes - ONES) & ~quotes) | ((backslashes - ONES) & ~backslashes) | ((word - SPACES) & ~word) | word
    return marks & TOPS == 0


@njit(cache=True, nogil=True)
def _character(at, end):
    """How many bytes the character at an address has, which is not ASCII; 0 if there is none."""
    first = load_u8(at)
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
        if load_u8(place) & 0xC0 != 0x80:
            return 0
    second = load_u8(at + 1)
    # Too long for what it says, half of a surrogate pair, or beyond the last character.
    if (
        (first == 0xE0 and second < 0xA0)
        or (first == 0xED and second > 0x9F)
        or (first == 0xF0 and second < 0x90)
        or (first == 0xF4 and second > 0x8F)
    ):
        return 0
    return length


@njit(cache=True, nogil=True)
def _put_special(place, end, to):
    """The character at an address, which is not plain; the places behind it, there and in what is written."""
    byte = load_u8(place)
    if byte >= 0x80:
        length = _character(place, end)
        if length == 0:
            store_u8(to, np.uint8(0xEF))
            store_u8(to + 1, np.uint8(0xBF))
            store_u8(to + 2, np.uint8(0xBD))
            return place + 1, to + 3
        for i in range(length):
            store_u8(to + i, load_u8(place + i))
        return place + length, to + length
    store_u8(to, BACKSLASH)
    if byte == QUOTE or byte == BACKSLASH:
        store_u8(to + 1, byte)
        return place + 1, to + 2
    if SHORT[byte] != 0:
        store_u8(to + 1, SHORT[byte])
        return place + 1, to + 2
    store_u8(to + 1, np.uint8(117))
    store_u8(to + 2, np.uint8(48))
    store_u8(to + 3, np.uint8(48))
    store_u8(to + 4, HEX[byte >> 4])
    store_u8(to + 5, HEX[byte & 15])
    return place + 1, to + 6


@njit(cache=True, nogil=True)
def _put_string(place, end, readable, to):
    """The text from an address to another in quotes. Eight bytes are read and written at a time: up to `readable` they
    may be read, and whoever makes room has made it for more than these.
    """
    store_u8(to, QUOTE)
    to += 1
    while place < end:
        if place + 8 <= readable:
            word = load_u64(place)
            if end - place < 8:
                # What lies behind is anything; as blanks it is plain.
                behind = ~np.uint64(0) << np.uint64(8 * (end - place))
                word = (word & ~behind) | (SPACES & behind)
            if _are_plain(word):
                store_u64(to, word)
                step = min(end - place, 8)
                place += step
                to += step
                continue
        byte = load_u8(place)
        if 0x20 <= byte < 0x80 and byte != QUOTE and byte != BACKSLASH:
            store_u8(to, byte)
            place += 1
            to += 1
        else:
            place, to = _put_special(place, end, to)
    store_u8(to, QUOTE)
    return to + 1


@njit(cache=True, nogil=True, inline="always")
def _length(at):
    return np.int64(load_u8(at)) | np.int64(load_u8(at + 1)) << 8


@njit(cache=True, nogil=True)
def _put_labels(place, end, readable, to):
    """The part key from an address to another as an object."""
    store_u8(to, OPEN)
    to += 1
    while place < end:
        name = place + 2 + _length(place)
        to = _put_string(place + 2, name, readable, to)
        store_u8(to, COLON)
        place = name + 2 + _length(name)
        to = _put_string(name + 2, place, readable, to + 1)
        if place < end:
            store_u8(to, COMMA)
            to += 1
    store_u8(to, CLOSE)
    return to + 1


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
    base, start = np.int64(data.ctypes.data), np.int64(out.ctypes.data)
    readable, to = base + len(data), start
    for term in range(first, behind):
        to = _put_string(base + offsets[term], base + offsets[term + 1], readable, to)
        store_u8(to, COMMA)
        to += 1
    return to - start


@njit(cache=True, nogil=True)
def write_series(offsets, data, first, behind, out):
    """Part keys as objects, each with a comma behind it."""
    base, start = np.int64(data.ctypes.data), np.int64(out.ctypes.data)
    readable, to = base + len(data), start
    for key in range(first, behind):
        to = _put_labels(base + offsets[key], base + offsets[key + 1], readable, to)
        store_u8(to, COMMA)
        to += 1
    return to - start


@njit(cache=True, nogil=True)
def write_vector(offsets, data, time, bits, first, behind, out):
    """Series with one point each, at one time, each with a comma behind it."""
    base, start = np.int64(data.ctypes.data), np.int64(out.ctypes.data)
    readable, at = base + len(data), 0
    for key in range(first, behind):
        at = _write_text(METRIC, out, at)
        at = _put_labels(base + offsets[key], base + offsets[key + 1], readable, start + at) - start
        at = _write_text(VALUE, out, at)
        at = write_point(time, bits[key], out, at)
        out[at] = CLOSE
        out[at + 1] = COMMA
        at += 2
    return at


@njit(cache=True, nogil=True)
def write_matrix(offsets, data, first_point, time, bits, first, behind, out):
    """Series with their points, at least one each, each with a comma behind it."""
    base, start = np.int64(data.ctypes.data), np.int64(out.ctypes.data)
    readable, at = base + len(data), 0
    for key in range(first, behind):
        at = _write_text(METRIC, out, at)
        at = _put_labels(base + offsets[key], base + offsets[key + 1], readable, start + at) - start
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
