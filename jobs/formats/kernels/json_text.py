"""Parses the elements of JSON: strings, numbers, and values that are skipped. They are checked as strictly as RFC 8259
requires, except for UTF-8, which is checked where a text is used.
"""

import numpy as np
from numba import njit

from strandline.jobs.formats.kernels.block import RETURN, SPACE, TAB
from strandline.jobs.formats.kernels.decimals import BAD, scan_decimal
from strandline.kernels.machine import load_u8, store_u8

QUOTE, BACKSLASH, COMMA, COLON, OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY = tuple(b'"\\,:{}[]')
MINUS, DOT, LETTER_U, LETTER_N, LETTER_T, LETTER_F = tuple(b"-.untf")
TOO_DEEP = -3  # As a position.
MAX_DEPTH = 60  # One bit of a word for each level of nesting.

# The character of an escape by its letter; 0 for invalid escapes.
ESCAPES = np.zeros(256, dtype=np.uint8)
for letter, byte in zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True):
    ESCAPES[letter] = byte
NULL, TRUE, FALSE = tuple(b"null"), tuple(b"true"), tuple(b"false")


@njit(cache=True)
def skip_space(at, end):
    """The position of the next byte that is not white space, or `end`."""
    while at < end and (load_u8(at) == SPACE or load_u8(at) == TAB or load_u8(at) == RETURN):
        at += 1
    return at


@njit(cache=True)
def skip_word(at, end, word):
    """The position after a word, or `BAD`."""
    if at + len(word) > end:
        return BAD
    same = True
    for i in range(len(word)):
        same &= load_u8(at + i) == word[i]
    return at + len(word) if same else BAD


@njit(cache=True)
def _hex4(at, end):
    """Four hexadecimal digits: their number, or `BAD`."""
    if at + 4 > end:
        return BAD
    number = 0
    for i in range(4):
        byte = np.int64(load_u8(at + i))
        letter = byte | 0x20
        if 0x30 <= byte <= 0x39:
            number = number * 16 + byte - 0x30
        elif 0x61 <= letter <= 0x66:
            number = number * 16 + letter - 0x61 + 10
        else:
            return BAD
    return number


@njit(cache=True)
def _low_surrogate(at, end):
    """The low surrogate of an escape at this position, or `BAD`."""
    if at + 6 > end or load_u8(at) != BACKSLASH or load_u8(at + 1) != LETTER_U:
        return BAD
    code = _hex4(at + 2, end)
    return code if 0xDC00 <= code < 0xE000 else BAD


@njit(cache=True)
def _put_character(out, code):
    """Write a character as UTF-8. Returns its number of bytes. An unpaired surrogate is written too, which makes the
    text invalid UTF-8.
    """
    if code < 0x80:
        store_u8(out, np.uint8(code))
        return 1
    if code < 0x800:
        store_u8(out, np.uint8(0xC0 | (code >> 6)))
        store_u8(out + 1, np.uint8(0x80 | (code & 0x3F)))
        return 2
    if code < 0x10000:
        store_u8(out, np.uint8(0xE0 | (code >> 12)))
        store_u8(out + 1, np.uint8(0x80 | ((code >> 6) & 0x3F)))
        store_u8(out + 2, np.uint8(0x80 | (code & 0x3F)))
        return 3
    store_u8(out, np.uint8(0xF0 | (code >> 18)))
    store_u8(out + 1, np.uint8(0x80 | ((code >> 12) & 0x3F)))
    store_u8(out + 2, np.uint8(0x80 | ((code >> 6) & 0x3F)))
    store_u8(out + 3, np.uint8(0x80 | (code & 0x3F)))
    return 4


MAX_CHARACTER_BYTES = 4


@njit(cache=True)
def read_string(at, end, free, max_length):
    """Parse a string at its quote: (start, length, position after it or `BAD`, next `free`).

    A string with escapes is written to the address `free`. One that is longer than `max_length` is truncated after the
    character that exceeds it.
    """
    if at >= end or load_u8(at) != QUOTE:
        return at, 0, BAD, free
    at += 1
    start = at
    while at < end:
        byte = load_u8(at)
        if byte == QUOTE:
            return start, at - start, at + 1, free
        if byte < SPACE:
            return at, 0, BAD, free
        if byte == BACKSLASH:
            break
        at += 1
    length = 0
    at = start
    while at < end:
        byte = load_u8(at)
        at += 1
        if byte == QUOTE:
            return free, length, at, free + length
        if byte < SPACE:
            break
        if byte == BACKSLASH:
            if at >= end:
                break
            letter = load_u8(at)
            at += 1
            if letter == LETTER_U:
                code = _hex4(at, end)
                if code < 0:
                    break
                at += 4
                if (
                    0xD800 <= code < 0xDC00
                    and at + 6 <= end
                    and load_u8(at) == BACKSLASH
                    and load_u8(at + 1) == LETTER_U
                ):
                    second = _hex4(at + 2, end)
                    if 0xDC00 <= second < 0xE000:
                        code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00)
                        at += 6
                if length <= max_length:
                    length += _put_character(free + length, code)
                continue
            byte = ESCAPES[letter]
            if byte == 0:
                break
        if length <= max_length:
            store_u8(free + length, byte)
            length += 1
    return at, 0, BAD, free


@njit(cache=True)
def is_number(at, end):
    """Whether a number accepted by `scan_decimal` is valid in JSON: no plus, no leading zero, digits on both sides of a
    dot.
    """
    at += load_u8(at) == MINUS
    start = at
    while at < end and 0x30 <= load_u8(at) <= 0x39:
        at += 1
    if at == start or (at - start > 1 and load_u8(start) == 0x30):
        return False
    return at == end or load_u8(at) != DOT or (at + 1 < end and 0x30 <= load_u8(at + 1) <= 0x39)


@njit(cache=True)
def _skip_scalar(at, end, free):
    """The position after a string, number or word, or `BAD`."""
    byte = load_u8(at)
    if byte == QUOTE:
        _, _, at, _ = read_string(at, end, free, 0)
        return at
    if byte == LETTER_N:
        return skip_word(at, end, NULL)
    if byte == LETTER_T:
        return skip_word(at, end, TRUE)
    if byte == LETTER_F:
        return skip_word(at, end, FALSE)
    _, _, _, _, after = scan_decimal(at, end)
    return after if after > 0 and is_number(at, after) else BAD


@njit(cache=True)
def _skip_key(at, end, free):
    """The position of the value after a key, or `BAD`."""
    _, _, at, _ = read_string(at, end, free, 0)
    if at < 0:
        return BAD
    at = skip_space(at, end)
    return skip_space(at + 1, end) if at < end and load_u8(at) == COLON else BAD


@njit(cache=True)
def skip_value(at, end, free):
    """The position after any value, `BAD`, or `TOO_DEEP`. The address `free` must have room for two characters."""
    depth, objects = 0, 0  # Bits of `objects`: whether an open bracket is a brace, innermost lowest.
    while True:
        if at >= end:
            return BAD
        byte = load_u8(at)
        if byte == OPEN_OBJECT or byte == OPEN_ARRAY:
            if depth == MAX_DEPTH:
                return TOO_DEEP
            depth += 1
            objects = (objects << 1) | (byte == OPEN_OBJECT)
            at = skip_space(at + 1, end)
            if at < end and load_u8(at) == (CLOSE_OBJECT if objects & 1 else CLOSE_ARRAY):
                at += 1
                depth -= 1
                objects >>= 1
            else:
                if objects & 1:
                    at = _skip_key(at, end, free)
                    if at < 0:
                        return BAD
                continue
        else:
            at = _skip_scalar(at, end, free)
            if at < 0:
                return BAD
        # After a value: a comma and the next value, or closing brackets.
        while depth > 0:
            at = skip_space(at, end)
            if at >= end:
                return BAD
            byte = load_u8(at)
            if byte == COMMA:
                at = skip_space(at + 1, end)
                if objects & 1:
                    at = _skip_key(at, end, free)
                    if at < 0:
                        return BAD
                break
            if byte != (CLOSE_OBJECT if objects & 1 else CLOSE_ARRAY):
                return BAD
            at += 1
            depth -= 1
            objects >>= 1
        else:
            return at
