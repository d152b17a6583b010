"""The protobuf primitives of the kernels: reading varints, skipping fields, comparing and checking text.

Positions are addresses. Every function gets the address after the last byte that it may read (`end`), and reads nothing
from there on. A position of `BAD` means that the bytes are malformed; the docstrings say how.
"""

import numpy as np
from numba import njit

from strandline.kernels.machine import load_u8, load_u64

U64 = np.uint64
HIGH_BITS = U64(0x8080808080808080)

WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 0, 1, 2, 5
MAX_VARINT = 10
BAD = -1


@njit(cache=True)
def read_varint(at, end):
    """A varint's value and the position after it; position `BAD` if it is cut off or longer than ten bytes."""
    if at < end and load_u8(at) < 0x80:
        return U64(load_u8(at)), at + 1
    value, shift = U64(0), U64(0)
    last = min(end, at + MAX_VARINT)
    while at < last:
        byte = U64(load_u8(at))
        at += 1
        value |= (byte & U64(0x7F)) << shift
        if byte < U64(0x80):
            return value, at
        shift += U64(7)
    return U64(0), BAD


@njit(cache=True)
def read_length(at, end):
    """The length of a length-delimited field and the start of its content; position `BAD` if it does not fit before
    `end`.
    """
    length, at = read_varint(at, end)
    if at < 0 or length > U64(end - at):
        return 0, BAD
    return np.int64(length), at


@njit(cache=True)
def skip_field(tag, at, end):
    """The position after a field whose tag was just read. `BAD` if it is cut off, a group, or not a valid field."""
    wire_type = np.int64(tag & U64(7))
    if tag >> U64(3) == U64(0) or tag >> U64(32) != U64(0):
        return BAD
    if wire_type == WIRE_VARINT:
        _, at = read_varint(at, end)
        return at
    if wire_type == WIRE_BYTES:
        length, at = read_length(at, end)
        return at + length if at >= 0 else BAD
    if wire_type == WIRE_64:
        at += 8
    elif wire_type == WIRE_32:
        at += 4
    else:
        return BAD
    return at if at <= end else BAD


@njit(cache=True)
def compare_bytes(one, one_length, two, two_length):
    """Negative, zero or positive if the first run of bytes sorts before, equal to or after the second."""
    for i in range(min(one_length, two_length)):
        difference = np.int64(load_u8(one + i)) - np.int64(load_u8(two + i))
        if difference != 0:
            return difference
    return one_length - two_length


@njit(cache=True)
def is_ascii(at, length):
    """Whether no byte has its highest bit set."""
    seen = U64(0)
    end = at + length
    while at + 32 <= end:
        seen |= load_u64(at) | load_u64(at + 8) | load_u64(at + 16) | load_u64(at + 24)
        at += 32
    while at + 8 <= end:
        seen |= load_u64(at)
        at += 8
    while at < end:
        seen |= U64(load_u8(at))
        at += 1
    return seen & HIGH_BITS == U64(0)


@njit(cache=True)
def is_utf8(at, length):
    """Whether the bytes are well-formed UTF-8: no overlong forms, no surrogates, nothing past U+10FFFF."""
    end = at + length
    while at < end:
        first = load_u8(at)
        at += 1
        if first < 0x80:
            continue
        # How many bytes follow, and the range of the first of them.
        low, high = 0x80, 0xBF
        if 0xC2 <= first <= 0xDF:
            more = 1
        elif 0xE0 <= first <= 0xEF:
            more = 2
            if first == 0xE0:
                low = 0xA0
            elif first == 0xED:
                high = 0x9F
        elif 0xF0 <= first <= 0xF4:
            more = 3
            if first == 0xF0:
                low = 0x90
            elif first == 0xF4:
                high = 0x8F
        else:
            return False
        if at + more > end or not low <= load_u8(at) <= high:
            return False
        for i in range(1, more):
            if not 0x80 <= load_u8(at + i) <= 0xBF:
                return False
        at += more
    return True


@njit(cache=True)
def varint_size(number):
    """The number of bytes of a length below two million, as a varint."""
    return 1 if number < 0x80 else 2 if number < 0x4000 else 3


@njit(cache=True)
def put_varint(out, at, number):
    """Write a varint at `out[at]`; return the position after it."""
    while number >= 0x80:
        out[at] = (number & 0x7F) | 0x80
        number >>= 7
        at += 1
    out[at] = number
    return at + 1
