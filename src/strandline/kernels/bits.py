"""Operations on the bits of machine words: counting zeros, and converting bits to a double."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _zeros(instruction):
    def generate(_context, builder, _signature, arguments):
        # `is_zero_poison` is 0: the result for zero is defined, and is 64.
        return getattr(builder, instruction)(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def leading_zeros(_typing, word):
    """The number of zero bits above the highest 1 bit; 64 for zero."""
    return _zeros("ctlz")


@intrinsic
def trailing_zeros(_typing, word):
    """The number of zero bits below the lowest 1 bit; 64 for zero."""
    return _zeros("cttz")


@intrinsic
def float_of_bits(_typing, word):
    """The double with these 64 bits."""

    def generate(_context, builder, _signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.uint64), generate
