"""Binary operators and negation, over the values of aligned rows. Vector matching and the labels of results are in
`strandline.promql.joins`.
"""

from types import MappingProxyType
from typing import Final

import numpy as np

from strandline.arrays import Bools, F64s, Rows
from strandline.promql.expressions import Operator
from strandline.promql.kernels import operators
from strandline.promql.values import NO_SAMPLE, NO_SAMPLE_BITS, F64Matrix, bits_for_reading, for_reading

_CODES: Final = MappingProxyType(
    {
        Operator.ADD: operators.ADD,
        Operator.SUBTRACT: operators.SUBTRACT,
        Operator.MULTIPLY: operators.MULTIPLY,
        Operator.DIVIDE: operators.DIVIDE,
        Operator.MODULO: operators.MODULO,
        Operator.POWER: operators.POWER,
        Operator.ATAN2: operators.ATAN2,
        Operator.EQUAL: operators.EQUAL,
        Operator.NOT_EQUAL: operators.NOT_EQUAL,
        Operator.GREATER: operators.GREATER,
        Operator.LESS: operators.LESS,
        Operator.GREATER_EQUAL: operators.GREATER_EQUAL,
        Operator.LESS_EQUAL: operators.LESS_EQUAL,
    }
)


def missing(values: F64Matrix) -> Bools:
    """Where there is no sample."""
    found: Bools = bits_for_reading(values) == NO_SAMPLE_BITS
    return found


def drops_name(operator: Operator, *, returns_bool: bool = False) -> bool:
    """Whether results lose the metric name: those of all operators except filters and set operators."""
    return returns_bool or not (operator.is_comparison or operator.is_set)


def is_histogram_operator(operator: Operator) -> bool:
    """Whether it is an operator for native histograms, whose result for floats is empty."""
    return operator in (Operator.TRIM_UPPER, Operator.TRIM_LOWER)


def vector_with_vector(
    operator: Operator,
    left: F64Matrix,
    left_rows: Rows,
    right: F64Matrix,
    right_rows: Rows,
    *,
    returns_bool: bool = False,
) -> F64Matrix:
    """Combine row `left_rows[i]` of the left side with row `right_rows[i]` of the right side. A comparison keeps the
    left value where it is true, or returns 0 and 1 with `returns_bool`.
    """
    result_kind = operators.AS_BOOL if returns_bool else operators.KEEP_LEFT
    return _combined(operator, left, left_rows, right, right_rows, result_kind=result_kind)


def vector_with_scalar(operator: Operator, left: F64Matrix, right: F64s, *, returns_bool: bool = False) -> F64Matrix:
    """Combine each row with the scalar's value at the same step."""
    every, first = _every_row(left)
    result_kind = operators.AS_BOOL if returns_bool else operators.KEEP_LEFT
    return _combined(operator, left, every, right.reshape(1, -1), first, result_kind=result_kind)


def scalar_with_vector(operator: Operator, left: F64s, right: F64Matrix, *, returns_bool: bool = False) -> F64Matrix:
    """Combine the scalar's value with each row at the same step. A comparison keeps the vector's value here, too."""
    every, first = _every_row(right)
    result_kind = operators.AS_BOOL if returns_bool else operators.KEEP_RIGHT
    return _combined(operator, left.reshape(1, -1), first, right, every, result_kind=result_kind)


def scalar_with_scalar(operator: Operator, left: F64s, right: F64s) -> F64s:
    """Combine two scalars step by step. Comparisons return 0 and 1."""
    row = np.zeros(1, dtype=np.int64)
    out: F64s = _combined(operator, left.reshape(1, -1), row, right.reshape(1, -1), row, result_kind=operators.AS_BOOL)[
        0
    ]
    return out


def negated(values: F64Matrix) -> F64Matrix:
    """The negated values."""
    out: F64Matrix = np.negative(values)
    out[missing(values)] = NO_SAMPLE
    return out


def _every_row(vector: F64Matrix) -> tuple[Rows, Rows]:
    return np.arange(len(vector), dtype=np.int64), np.zeros(len(vector), dtype=np.int64)


def _combined(
    operator: Operator, left: F64Matrix, left_rows: Rows, right: F64Matrix, right_rows: Rows, *, result_kind: int
) -> F64Matrix:
    shape = len(left_rows), left.shape[1]
    if is_histogram_operator(operator):
        return np.full(shape, NO_SAMPLE)
    out = np.empty(shape, dtype=np.float64)
    operators.combine_rows(
        _CODES[operator],
        for_reading(left),
        for_reading(left_rows),
        for_reading(right),
        for_reading(right_rows),
        result_kind,
        out,
    )
    return out
