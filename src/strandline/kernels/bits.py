"""Bits of machine words: counting zeros, and doubles made of their bits."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _zeros(instruction):
    def generate(_context, builder, _signature, arguments):
        # Zero has a defined answer, 64, as the hardware's instruction gives it.
        return getattr(builder, instruction)(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def leading_zeros(_typing, word):
    """How many zero bits stand above the highest one of a word; 64 for zero."""
    return _zeros("ctlz")


@intrinsic
def trailing_zeros(_typing, word):
    """How many zero bits stand below the lowest one of a word; 64 for zero."""
    return _zeros("cttz")


@intrinsic
def float_of_bits(_typing, word):
    """The double that has these 64 bits."""

    def generate(_context, builder, _signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.uint64), generate
