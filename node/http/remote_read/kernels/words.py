"""Operations on words in memory (stores, counting zeros, moving bytes), and protobuf's varints.

As in `strandline.kernels.machine`, nothing checks bounds. A store of a word may overwrite eight bytes where fewer are
used, so callers leave that much room.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from strandline.kernels.machine import load_u64, store_u8, store_u64

U64 = np.uint64
WORD = 8

_BYTE, _HALF, _WORD = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_CONTINUES = U64(0x8080808080808080)


def _store(builder, address, value, kind):
    builder.store(value, builder.inttoptr(address, kind.as_pointer()), align=1)


@intrinsic
def store_u32(_typing, address, number):
    """Four bytes from an address on, little endian."""

    def generate(context, builder, _signature, arguments):
        _store(builder, arguments[0], arguments[1], _HALF)
        return context.get_dummy_value()

    return types.void(types.int64, types.uint32), generate


@intrinsic
def store_u64_big(_typing, address, word):
    """Eight bytes from an address on, big endian."""

    def generate(context, builder, _signature, arguments):
        _store(builder, arguments[0], builder.bswap(arguments[1]), _WORD)
        return context.get_dummy_value()

    return types.void(types.int64, types.uint64), generate


@intrinsic
def move_bytes(_typing, target, source, length):
    """Copy bytes between addresses. The two runs may overlap."""

    def generate(context, builder, _signature, arguments):
        to, start = (builder.inttoptr(address, _BYTE.as_pointer()) for address in arguments[:2])
        cgutils.raw_memmove(builder, to, start, arguments[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def leading_zeros(_typing, word):
    """The number of leading zero bits of a word, which must not be 0."""

    def generate(_context, builder, _signature, arguments):
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@intrinsic
def trailing_zeros(_typing, word):
    """The number of trailing zero bits of a word, which must not be 0."""

    def generate(_context, builder, _signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@njit(cache=True)
def load_i64(address):
    """Eight bytes from an address on, as a signed integer."""
    return np.int64(load_u64(address))


@njit(cache=True)
def varint_length(number):
    """The size of a word as a varint, with seven bits per byte."""
    return np.int64((U64(70) - leading_zeros(number | U64(1))) // U64(7))


@njit(cache=True)
def put_varint(at, number):
    """Write a word as a varint. Returns the position after it."""
    while number >= U64(0x80):
        store_u8(at, np.uint8((number & U64(0x7F)) | U64(0x80)))
        number >>= U64(7)
        at += 1
    store_u8(at, np.uint8(number))
    return at + 1


@njit(cache=True)
def put_short_varint(at, number, length):
    """Like `put_varint` without a loop, for a word of `length` bytes, at most eight. Overwrites eight bytes."""
    # Halves, then quarters, then groups of seven bits are moved apart, each group to its own byte.
    number = (number & U64(0x000000000FFFFFFF)) | ((number & U64(0x00FFFFFFF0000000)) << U64(4))
    number = (number & U64(0x00003FFF00003FFF)) | ((number & U64(0x0FFFC0000FFFC000)) << U64(2))
    number = (number & U64(0x007F007F007F007F)) | ((number & U64(0x3F803F803F803F80)) << U64(1))
    others = (U64(1) << U64(8 * (length - 1))) - U64(1)
    store_u64(at, number | (_CONTINUES & others))
    return at + length
