"""Binary operators over aligned rows of two matrices.

A row is computed in two passes: the operator, and restoring "no sample". Both are simple enough to vectorise, and the
row stays in the L1 cache between them.
"""

import math

import numpy as np
from numba import njit

from strandline.promql.kernels.no_sample import NO_SAMPLE_BITS

ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULO, POWER, ATAN2 = range(7)
EQUAL, NOT_EQUAL, GREATER, LESS, GREATER_EQUAL, LESS_EQUAL = range(7, 13)
# The result of a comparison that is true: the left value, the right value, or 1 (and 0 where it is false).
KEEP_LEFT, KEEP_RIGHT, AS_BOOL = range(3)


@njit(cache=True, nogil=True, error_model="numpy")
def _compute(operator, left, right, out):
    steps = len(out)
    if operator == ADD:
        for step in range(steps):
            out[step] = left[step] + right[step]
    elif operator == SUBTRACT:
        for step in range(steps):
            out[step] = left[step] - right[step]
    elif operator == MULTIPLY:
        for step in range(steps):
            out[step] = left[step] * right[step]
    elif operator == DIVIDE:
        for step in range(steps):
            out[step] = left[step] / right[step]
    elif operator == MODULO:
        # As in Go: the sign of the dividend, and NaN for a divisor of 0 or an infinite dividend.
        for step in range(steps):
            out[step] = np.fmod(left[step], right[step])
    elif operator == POWER:
        for step in range(steps):
            out[step] = math.pow(left[step], right[step])
    else:
        for step in range(steps):
            out[step] = math.atan2(left[step], right[step])


@njit(cache=True, nogil=True)
def _compare(operator, left, right, out):
    """1 where the comparison is true, 0 elsewhere."""
    steps = len(out)
    if operator == EQUAL:
        for step in range(steps):
            out[step] = 1.0 if left[step] == right[step] else 0.0
    elif operator == NOT_EQUAL:
        for step in range(steps):
            out[step] = 1.0 if left[step] != right[step] else 0.0
    elif operator == GREATER:
        for step in range(steps):
            out[step] = 1.0 if left[step] > right[step] else 0.0
    elif operator == LESS:
        for step in range(steps):
            out[step] = 1.0 if left[step] < right[step] else 0.0
    elif operator == GREATER_EQUAL:
        for step in range(steps):
            out[step] = 1.0 if left[step] >= right[step] else 0.0
    else:
        for step in range(steps):
            out[step] = 1.0 if left[step] <= right[step] else 0.0


@njit(cache=True, nogil=True)
def combine_rows(operator, left, left_rows, right, right_rows, kept, out):
    """Compute row i of `out` from row `left_rows[i]` of `left` and row `right_rows[i]` of `right`. There is no sample
    where either has none, or where a filtering comparison is false. `out` must not overlap the operands.
    """
    left_bits, right_bits, out_bits = left.view(np.uint64), right.view(np.uint64), out.view(np.uint64)
    for row in range(len(left_rows)):
        one, other, result = left[left_rows[row]], right[right_rows[row]], out[row]
        one_bits, other_bits, result_bits = left_bits[left_rows[row]], right_bits[right_rows[row]], out_bits[row]
        if operator < EQUAL:
            _compute(operator, one, other, result)
        else:
            _compare(operator, one, other, result)
            if kept != AS_BOOL:
                source = one_bits if kept == KEEP_LEFT else other_bits
                for step in range(len(result)):
                    result_bits[step] = source[step] if result[step] == 1.0 else NO_SAMPLE_BITS
        for step in range(len(result)):
            if one_bits[step] == NO_SAMPLE_BITS or other_bits[step] == NO_SAMPLE_BITS:
                result_bits[step] = NO_SAMPLE_BITS
