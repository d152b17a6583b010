"""Machine operations that numba lacks: loads and stores at an address, and the 128-bit product of two words.

Kernels read messages by address instead of array and index: numba counts references of an array at each call, which
costs more than the work of most of these functions. No bounds are checked: callers check them. The code that takes the
address of an array must keep the array alive.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

U8, U32, U64, F64 = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.DoubleType()


def _loader(kind, result):
    def generate(_context, builder, _signature, arguments):
        pointer = builder.inttoptr(arguments[0], kind.as_pointer())
        # Fields of a message are not aligned.
        return builder.load(pointer, align=1)

    return result(types.int64), generate


@intrinsic
def load_u8(_typing, address):
    """The byte at an address."""
    return _loader(U8, types.uint8)


@intrinsic
def load_u32(_typing, address):
    """The four bytes at an address as a little-endian number."""
    return _loader(U32, types.uint32)


@intrinsic
def load_u64(_typing, address):
    """The eight bytes at an address as a little-endian number."""
    return _loader(U64, types.uint64)


@intrinsic
def load_u64_big(_typing, address):
    """The eight bytes at an address as a big-endian number."""

    def generate(_context, builder, _signature, arguments):
        pointer = builder.inttoptr(arguments[0], U64.as_pointer())
        return builder.bswap(builder.load(pointer, align=1))

    return types.uint64(types.int64), generate


@intrinsic
def load_f64(_typing, address):
    """The eight bytes at an address as a double. The bits of a NaN are preserved."""
    return _loader(F64, types.float64)


@intrinsic
def store_u8(_typing, address, byte):
    """Write a byte to an address."""

    def generate(context, builder, _signature, arguments):
        pointer = builder.inttoptr(arguments[0], U8.as_pointer())
        builder.store(arguments[1], pointer)
        return context.get_dummy_value()

    return types.void(types.int64, types.uint8), generate


@intrinsic
def store_u64(_typing, address, word):
    """Write eight bytes to an address, little endian."""

    def generate(context, builder, _signature, arguments):
        pointer = builder.inttoptr(arguments[0], U64.as_pointer())
        builder.store(arguments[1], pointer, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.uint64), generate


@intrinsic
def multiply_wide(_typing, left, right):
    """The product of two words as (low word, high word)."""

    def generate(_context, builder, _signature, arguments):
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(arguments[0], wide), builder.zext(arguments[1], wide))
        low = builder.trunc(product, U64)
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), U64)
        return cgutils.pack_array(builder, [low, high])

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), generate
