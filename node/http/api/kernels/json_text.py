"""Writes labels and lists as JSON, from columns of part keys, terms and samples.

Text is written as UTF-8. An invalid byte becomes U+FFFD, so that the output is always valid JSON.
"""

import numpy as np
from numba import njit

from strandline.kernels.machine import load_u8, load_u64, store_u8, store_u64
from strandline.node.http.api.kernels.decimals import MAX_TIME_LENGTH, MAX_VALUE_LENGTH, write_time, write_value

# The maximum size of what surrounds the labels of a series, and of a point with brackets, comma and quotes.
SERIES_FRAME = 64
POINT_FRAME = MAX_TIME_LENGTH + MAX_VALUE_LENGTH + 8
# The longest escape of a byte: \u00xx.
MAX_ESCAPED = 6

QUOTE, BACKSLASH, COMMA, COLON = np.uint8(34), np.uint8(92), np.uint8(44), np.uint8(58)
OPEN, CLOSE, OPEN_LIST, CLOSE_LIST = np.uint8(123), np.uint8(125), np.uint8(91), np.uint8(93)
HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
METRIC = np.frombuffer(b'{"metric":', dtype=np.uint8)
VALUE = np.frombuffer(b',"value":', dtype=np.uint8)
VALUES = np.frombuffer(b',"values":[', dtype=np.uint8)
# The character after the backslash in the short escape of a control character; 0 without one.
SHORT_ESCAPE = np.zeros(32, dtype=np.uint8)
SHORT_ESCAPE[[8, 9, 10, 12, 13]] = np.frombuffer(b"btnfr", dtype=np.uint8)
# The same byte eight times, for checking eight bytes at a time.
ONES, TOPS, SPACES = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080), np.uint64(0x2020202020202020)
QUOTES, BACKSLASHES = np.uint64(0x2222222222222222), np.uint64(0x5C5C5C5C5C5C5C5C)


@njit(cache=True, nogil=True, inline="always")
def _are_plain(word):
    """Whether eight bytes need no escape. May return False for bytes that need none."""
    quotes, backslashes = word ^ QUOTES, word ^ BACKSLASHES
    marks = ((quotes - ONES) & ~quotes) | ((backslashes - ONES) & ~backslashes) | ((word - SPACES) & ~word) | word
    return marks & TOPS == 0


@njit(cache=True, nogil=True)
def _character(at, end):
    """The number of bytes of the non-ASCII character at an address; 0 if it is invalid."""
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
    for address in range(at + 1, at + length):
        if load_u8(address) & 0xC0 != 0x80:
            return 0
    second = load_u8(at + 1)
    # An overlong encoding, half of a surrogate pair, or beyond the last character.
    if (
        (first == 0xE0 and second < 0xA0)
        or (first == 0xED and second > 0x9F)
        or (first == 0xF0 and second < 0x90)
        or (first == 0xF4 and second > 0x8F)
    ):
        return 0
    return length


@njit(cache=True, nogil=True)
def _put_special(address, end, to):
    """Write the character at an address, which is not plain ASCII. Returns the addresses after it, in input and
    output.
    """
    byte = load_u8(address)
    if byte >= 0x80:
        length = _character(address, end)
        if length == 0:
            store_u8(to, np.uint8(0xEF))
            store_u8(to + 1, np.uint8(0xBF))
            store_u8(to + 2, np.uint8(0xBD))
            return address + 1, to + 3
        for i in range(length):
            store_u8(to + i, load_u8(address + i))
        return address + length, to + length
    store_u8(to, BACKSLASH)
    if byte == QUOTE or byte == BACKSLASH:
        store_u8(to + 1, byte)
        return address + 1, to + 2
    if SHORT_ESCAPE[byte] != 0:
        store_u8(to + 1, SHORT_ESCAPE[byte])
        return address + 1, to + 2
    store_u8(to + 1, np.uint8(117))
    store_u8(to + 2, np.uint8(48))
    store_u8(to + 3, np.uint8(48))
    store_u8(to + 4, HEX[byte >> 4])
    store_u8(to + 5, HEX[byte & 15])
    return address + 1, to + 6


@njit(cache=True, nogil=True)
def _put_string(address, end, readable, to):
    """Write the text between two addresses in quotes. Eight bytes are read and written at a time: memory up to
    `readable` may be read, and the output must have room for them.
    """
    store_u8(to, QUOTE)
    to += 1
    while address < end:
        if address + 8 <= readable:
            word = load_u64(address)
            if end - address < 8:
                # The bytes after the end are replaced with blanks, which need no escape.
                after = ~np.uint64(0) << np.uint64(8 * (end - address))
                word = (word & ~after) | (SPACES & after)
            if _are_plain(word):
                store_u64(to, word)
                step = min(end - address, 8)
                address += step
                to += step
                continue
        byte = load_u8(address)
        if 0x20 <= byte < 0x80 and byte != QUOTE and byte != BACKSLASH:
            store_u8(to, byte)
            address += 1
            to += 1
        else:
            address, to = _put_special(address, end, to)
    store_u8(to, QUOTE)
    return to + 1


@njit(cache=True, nogil=True, inline="always")
def _length(at):
    return np.int64(load_u8(at)) | np.int64(load_u8(at + 1)) << 8


@njit(cache=True, nogil=True)
def _put_labels(address, end, readable, to):
    """Write the part key between two addresses as an object."""
    store_u8(to, OPEN)
    to += 1
    while address < end:
        name = address + 2 + _length(address)
        to = _put_string(address + 2, name, readable, to)
        store_u8(to, COLON)
        address = name + 2 + _length(name)
        to = _put_string(name + 2, address, readable, to + 1)
        if address < end:
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
    """Write a list of a time and a value, which is given by its bits."""
    out[at] = OPEN_LIST
    at = write_time(time, out, at + 1)
    out[at] = COMMA
    out[at + 1] = QUOTE
    at = write_value(bits, out, at + 2)
    out[at] = QUOTE
    out[at + 1] = CLOSE_LIST
    return at + 2


@njit(cache=True, nogil=True)
def write_terms(offsets, data, first, end, out):
    """Write the terms from `first` up to, not including, `end` as strings, each followed by a comma."""
    base, start = np.int64(data.ctypes.data), np.int64(out.ctypes.data)
    readable, to = base + len(data), start
    for term in range(first, end):
        to = _put_string(base + offsets[term], base + offsets[term + 1], readable, to)
        store_u8(to, COMMA)
        to += 1
    return to - start


@njit(cache=True, nogil=True)
def write_series(offsets, data, first, end, out):
    """Write part keys as objects, each followed by a comma."""
    base, start = np.int64(data.ctypes.data), np.int64(out.ctypes.data)
    readable, to = base + len(data), start
    for key in range(first, end):
        to = _put_labels(base + offsets[key], base + offsets[key + 1], readable, to)
        store_u8(to, COMMA)
        to += 1
    return to - start


@njit(cache=True, nogil=True)
def write_vector(offsets, data, time, bits, first, end, out):
    """Write series with one point each, at one time, each followed by a comma."""
    base, start = np.int64(data.ctypes.data), np.int64(out.ctypes.data)
    readable, at = base + len(data), 0
    for key in range(first, end):
        at = _write_text(METRIC, out, at)
        at = _put_labels(base + offsets[key], base + offsets[key + 1], readable, start + at) - start
        at = _write_text(VALUE, out, at)
        at = write_point(time, bits[key], out, at)
        out[at] = CLOSE
        out[at + 1] = COMMA
        at += 2
    return at


@njit(cache=True, nogil=True)
def write_matrix(offsets, data, first_point, time, bits, first, end, out):
    """Write series with their points, at least one each, each followed by a comma."""
    base, start = np.int64(data.ctypes.data), np.int64(out.ctypes.data)
    readable, at = base + len(data), 0
    for key in range(first, end):
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
