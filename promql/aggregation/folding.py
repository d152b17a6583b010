"""Aggregations whose state is a few numbers for each group and step: sums, averages, extremes, counts and variances."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from strandline.arrays import Bools, F64s, Rows
from strandline.index.key_bytes import KeyBytes
from strandline.promql.expressions import Aggregator
from strandline.promql.kernels.folding import (
    fold_average,
    fold_count,
    fold_max,
    fold_min,
    fold_sum,
    fold_variance,
    merge_average,
    merge_sum,
    merge_variance,
)
from strandline.promql.values import NO_SAMPLE, F64Matrix, Vector

INITIAL: Final[dict[Aggregator, tuple[float, ...]]] = {
    # A total, its compensation, and a count.
    Aggregator.SUM: (0.0, 0.0, 0.0),
    # The same, and 1.0 where the total is a running mean because the sum would overflow.
    Aggregator.AVG: (0.0, 0.0, 0.0, 0.0),
    Aggregator.MIN: (NO_SAMPLE,),
    Aggregator.MAX: (NO_SAMPLE,),
    Aggregator.COUNT: (0.0,),
    Aggregator.GROUP: (0.0,),
    # A count, the mean, the sum of squared distances from it, the minimum and the maximum.
    Aggregator.STDDEV: (0.0, 0.0, 0.0, np.inf, -np.inf),
    Aggregator.STDVAR: (0.0, 0.0, 0.0, np.inf, -np.inf),
}


@dataclass(frozen=True, slots=True)
class FoldedState:
    """The columns of `INITIAL`, each a matrix of groups by steps."""

    keys: KeyBytes
    columns: tuple[F64Matrix, ...]


class FoldingAccumulator:
    """Folds blocks of one aggregation."""

    def __init__(self, aggregator: Aggregator, steps: int) -> None:
        self._aggregator = aggregator
        self._steps = steps
        self._groups = 0
        self._columns: list[F64Matrix] = [np.empty((0, steps)) for _ in INITIAL[aggregator]]

    @property
    def held_bytes(self) -> int:
        """The size of the state."""
        return sum(column.nbytes for column in self._columns)

    def add(self, values: F64Matrix, group_of: Rows, groups: int, _keys: KeyBytes) -> None:
        """Fold a block of series. `groups` is the number of groups so far, including those of this block."""
        self._reserve(groups)
        columns, bits = self._columns, values.view(np.int64)
        match self._aggregator:
            case Aggregator.SUM:
                fold_sum(values, bits, group_of, *columns)
            case Aggregator.AVG:
                fold_average(values, bits, group_of, *columns)
            case Aggregator.MIN:
                fold_min(values, bits, group_of, *columns)
            case Aggregator.MAX:
                fold_max(values, bits, group_of, *columns)
            case Aggregator.COUNT | Aggregator.GROUP:
                fold_count(bits, group_of, *columns)
            case _:
                fold_variance(values, bits, group_of, *columns)

    def merge_state(self, state: FoldedState, group_of: Rows, groups: int) -> None:
        """Merge a state. `group_of` maps its groups to the groups of this accumulator."""
        self._reserve(groups)
        columns = [*state.columns, group_of, *self._columns]
        match self._aggregator:
            case Aggregator.SUM:
                merge_sum(*columns)
            case Aggregator.AVG:
                merge_average(*columns)
            case Aggregator.MIN | Aggregator.MAX:
                self.add(state.columns[0], group_of, groups, state.keys)
            case Aggregator.COUNT | Aggregator.GROUP:
                self._columns[0][group_of] += state.columns[0]
            case _:
                merge_variance(*columns)

    def state(self, keys: KeyBytes) -> FoldedState:
        """The state so far."""
        return FoldedState(keys, tuple(column[: self._groups] for column in self._columns))

    def _reserve(self, groups: int) -> None:
        held = len(self._columns[0])
        if groups > held:
            for index, initial in enumerate(INITIAL[self._aggregator]):
                larger = np.full((max(groups, 2 * held), self._steps), initial)
                larger[: self._groups] = self._columns[index][: self._groups]
                self._columns[index] = larger
        self._groups = max(self._groups, groups)


def finish_folded(aggregator: Aggregator, state: FoldedState) -> Vector:
    """The value of each group and step."""
    match aggregator:
        case Aggregator.SUM:
            total, compensation, count = state.columns
            return Vector(state.keys, _where(count > 0, total + compensation))
        case Aggregator.AVG:
            return Vector(state.keys, _averages(*state.columns))
        case Aggregator.MIN | Aggregator.MAX:
            return Vector(state.keys, state.columns[0])
        case Aggregator.COUNT:
            return Vector(state.keys, _where(state.columns[0] > 0, state.columns[0]))
        case Aggregator.GROUP:
            return Vector(state.keys, _where(state.columns[0] > 0, np.ones_like(state.columns[0])))
        case _:
            count, found = state.columns[0], _variances(*state.columns)
            return Vector(state.keys, _where(count > 0, np.sqrt(found) if aggregator is Aggregator.STDDEV else found))


def _variances(
    count: F64Matrix, mean: F64Matrix, squares: F64Matrix, minimum: F64Matrix, maximum: F64Matrix
) -> F64Matrix:
    """Inf where a variance overflows, and NaN, as in Prometheus, where the distance of a value from the mean of the
    others overflows. In Prometheus this depends on the order of the series. Here results do not depend on any order.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        farthest = np.maximum(maximum - mean, mean - minimum) * (count / np.maximum(count - 1.0, 1.0))
        return np.where((count > 0) & np.isinf(farthest), np.nan, squares / np.maximum(count, 1.0))


def _averages(total: F64Matrix, compensation: F64Matrix, count: F64Matrix, is_mean: F64Matrix) -> F64Matrix:
    divisor = np.where(is_mean > 0, 1.0, np.maximum(count, 1.0))
    return _where(count > 0, total / divisor + compensation / divisor)


def _where(is_there: Bools, values: F64s) -> F64Matrix:
    """The values where there are any, and `NO_SAMPLE` elsewhere."""
    if is_there.all():
        return values
    return np.where(is_there, values, NO_SAMPLE)
