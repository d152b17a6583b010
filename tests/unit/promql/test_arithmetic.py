"""Binary operators, compared with the results of Go and PromQL for each pair of values."""

import math
import operator
from collections.abc import Callable

import numpy as np
import pytest

from strandline.promql.arithmetic import (
    drops_name,
    missing,
    negated,
    scalar_with_scalar,
    scalar_with_vector,
    vector_with_scalar,
    vector_with_vector,
)
from strandline.promql.expressions import Operator
from strandline.promql.values import NO_SAMPLE, NO_SAMPLE_BITS, F64Matrix

pytestmark = pytest.mark.unit

INF, NAN = math.inf, math.nan
SOME = [0.0, -0.0, 1.0, -1.0, 2.5, -3.0, 7.0, 1e300, INF, -INF, NAN]
PAIRS = [(left, right) for left in SOME for right in SOME]
COMPARISONS: dict[Operator, Callable[[float, float], bool]] = {
    Operator.EQUAL: operator.eq,
    Operator.NOT_EQUAL: operator.ne,
    Operator.GREATER: operator.gt,
    Operator.LESS: operator.lt,
    Operator.GREATER_EQUAL: operator.ge,
    Operator.LESS_EQUAL: operator.le,
}


def modulo(left: float, right: float) -> float:
    """Go's math.Mod: NaN where Python raises."""
    return NAN if math.isinf(left) or right == 0 else math.fmod(left, right)


def division(left: float, right: float) -> float:
    if right != 0:
        return left / right
    return NAN if left == 0 or math.isnan(left) else math.copysign(INF, left) * math.copysign(1.0, right)


def power(left: float, right: float) -> float:
    """Go's math.Pow: an infinity where Python raises for a power of zero or an overflow, NaN for roots of negatives."""
    if math.isfinite(left) and left < 0 and math.isfinite(right) and not right.is_integer():
        return NAN
    try:
        return math.pow(left, right)
    except OverflowError:
        return math.copysign(INF, left) if right % 2 == 1 else INF
    except ValueError:
        return math.copysign(INF, left) if right % 2 == 1 else INF


ARITHMETIC: dict[Operator, Callable[[float, float], float]] = {
    Operator.ADD: operator.add,
    Operator.SUBTRACT: operator.sub,
    Operator.MULTIPLY: operator.mul,
    Operator.DIVIDE: division,
    Operator.MODULO: modulo,
    Operator.POWER: power,
    Operator.ATAN2: math.atan2,
}


def same(found: float, expected: float) -> bool:
    if math.isnan(expected):
        return math.isnan(found)
    return math.isclose(found, expected, rel_tol=1e-15) and math.copysign(1, found) == math.copysign(1, expected)


def matrix(*rows: list[float]) -> F64Matrix:
    return np.array(rows, dtype=np.float64)


@pytest.mark.parametrize("name", ARITHMETIC)
def test_operators_compute_as_go_does(name: Operator) -> None:
    found = scalar_with_scalar(name, np.array([pair[0] for pair in PAIRS]), np.array([pair[1] for pair in PAIRS]))
    wrong = [
        (pair, value, ARITHMETIC[name](*pair))
        for pair, value in zip(PAIRS, found.tolist(), strict=True)
        if not same(value, ARITHMETIC[name](*pair))
    ]
    assert not wrong


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_filter_and_keep_the_vectors_value(name: Operator) -> None:
    left, right = (matrix(list(side)) for side in zip(*PAIRS, strict=True))
    holds = np.array([[COMPARISONS[name](*pair) for pair in PAIRS]])
    row = np.zeros(1, dtype=np.int64)
    by_rows = vector_with_vector(name, left, row, right, row)
    for filtered, kept in (
        (by_rows, left),
        (vector_with_scalar(name, left, right[0]), left),
        (scalar_with_vector(name, left[0], right), right),
    ):
        assert (missing(filtered) == ~holds).all()
        np.testing.assert_array_equal(filtered[holds], kept[holds])
    for truth in (
        vector_with_vector(name, left, row, right, row, returns_bool=True),
        vector_with_scalar(name, left, right[0], returns_bool=True),
        scalar_with_vector(name, left[0], right, returns_bool=True),
        scalar_with_scalar(name, left[0], right[0]).reshape(1, -1),
    ):
        np.testing.assert_array_equal(truth, holds.astype(np.float64))


@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARISONS])
def test_without_a_sample_the_result_has_no_sample(name: Operator) -> None:
    left, right = matrix([1, NO_SAMPLE, 3, NO_SAMPLE]), matrix([1, 2, NO_SAMPLE, NO_SAMPLE])
    row = np.zeros(1, dtype=np.int64)
    for returns_bool in (False, True):
        by_rows = vector_with_vector(name, left, row, right, row, returns_bool=returns_bool)
        assert missing(by_rows).tolist()[0][1:] == [True, True, True]
        scalar = np.array([1.0, NAN, 1.0, 1.0])
        for found in (
            vector_with_scalar(name, left, scalar, returns_bool=returns_bool),
            scalar_with_vector(name, scalar, left, returns_bool=returns_bool),
        ):
            assert missing(found)[0, [1, 3]].all()


def test_rows_are_combined_as_given() -> None:
    left, right = matrix([1, 2], [10, 20], [100, 200]), matrix([1000, 2000], [NO_SAMPLE, 5])
    found = vector_with_vector(Operator.ADD, left, np.array([2, 0, 2]), right, np.array([0, 1, 1]))
    np.testing.assert_array_equal(missing(found), [[False, False], [True, False], [True, False]])
    np.testing.assert_array_equal(found[~missing(found)], [1100, 2200, 7, 205])


def test_a_negated_gap_stays_a_gap_and_a_zero_gets_its_sign() -> None:
    found = negated(matrix([1, 0.0, NO_SAMPLE, INF, NAN]))
    assert found.view(np.uint64)[0, 2] == NO_SAMPLE_BITS
    assert found[0, 0] == -1
    assert math.copysign(1, found[0, 1]) == -1
    assert found[0, 3] == -INF
    assert math.isnan(found[0, 4])
    assert not missing(found)[0, 4]


@pytest.mark.parametrize("name", [Operator.TRIM_UPPER, Operator.TRIM_LOWER])
def test_operators_for_native_histograms_are_empty_for_floats(name: Operator) -> None:
    assert missing(vector_with_scalar(name, matrix([1, 2]), np.ones(2))).all()
    assert missing(scalar_with_vector(name, np.ones(2), matrix([1, 2]))).all()


def test_read_only_values_are_accepted() -> None:
    values = np.frombuffer(matrix([1, NO_SAMPLE]).tobytes(), dtype=np.float64).reshape(1, 2)
    found = vector_with_scalar(Operator.ADD, values, np.ones(2))
    assert found[0, 0] == 2
    assert missing(found)[0, 1]


def test_empty_vectors_stay_empty() -> None:
    none = np.empty((0, 3))
    assert vector_with_scalar(Operator.ADD, none, np.ones(3)).shape == (0, 3)
    assert negated(none).shape == (0, 3)


def test_filters_and_set_operators_keep_the_name() -> None:
    keeping = {name for name in Operator if not drops_name(name)}
    assert keeping == {*COMPARISONS, Operator.AND, Operator.OR, Operator.UNLESS}
    assert drops_name(Operator.GREATER, returns_bool=True)
