"""The specification of an aggregation: aggregator, grouping and parameter. Shards and the front share it."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from strandline.arrays import F64s, I64s, Rows
from strandline.index.selectors import METRIC_NAME
from strandline.promql.errors import EvaluationError
from strandline.promql.expressions import Aggregator
from strandline.promql.labels import GroupTable, is_valid_label_name

# The largest double below 2^63. Prometheus uses it as the limit.
_MAX_INT64: Final = 9223372036854774784.0
_MIN_INT64: Final = -9223372036854775808.0
RANKING: Final = frozenset({Aggregator.TOPK, Aggregator.BOTTOMK})


@dataclass(frozen=True, slots=True)
class AggregationSpec:
    """An aggregator, its grouping labels, and its parameter: a number for each step, the name of a label for
    count_values, or None. The labels are kept, or dropped with `is_without`.
    """

    aggregator: Aggregator
    labels: tuple[str, ...] = ()
    is_without: bool = False
    parameter: F64s | str | None = None

    def group_table(self) -> GroupTable:
        """An empty table of this aggregation's groups."""
        if self.aggregator is not Aggregator.COUNT_VALUES:
            return GroupTable.of_aggregation(self.labels, is_without=self.is_without)
        # The value's label is set before series are grouped, so a label of that name in a series is ignored.
        labels = {*self.labels, self.value_label} if self.is_without else {*self.labels} - {self.value_label}
        return GroupTable.of_aggregation(labels, is_without=self.is_without)

    @property
    def value_label(self) -> str:
        """The label that count_values writes values to."""
        if not isinstance(self.parameter, str):
            raise TypeError(f"{self.aggregator} has no label as its parameter")
        return self.parameter

    @property
    def drops_value_label(self) -> bool:
        """Whether the grouping drops the label of count_values again, so that a group's values are counted together."""
        return self.is_without and self.value_label in {*self.labels, METRIC_NAME}

    @property
    def numbers(self) -> F64s:
        """The parameter at each step."""
        if self.parameter is None or isinstance(self.parameter, str):
            raise TypeError(f"{self.aggregator} has no number as its parameter")
        return self.parameter

    @property
    def limits(self) -> I64s:
        """The number of series of a group that topk and bottomk keep at each step."""
        # No series for NaN and infinities, which have no integer value.
        return np.trunc(np.nan_to_num(self.numbers, nan=0.0, posinf=0.0, neginf=0.0)).astype(np.int64)

    def check(self) -> None:
        """Raise `EvaluationError` for parameters that Prometheus rejects."""
        if self.aggregator is Aggregator.COUNT_VALUES and not is_valid_label_name(self.value_label):
            raise EvaluationError(f'invalid label name "{self.value_label}"')
        if self.aggregator in RANKING and len(self.numbers) and not self.numbers.max() < 1:
            minimum, maximum = float(self.numbers.min()), float(self.numbers.max())
            if np.isnan(maximum):
                raise EvaluationError("Parameter value is NaN")
            if minimum <= _MIN_INT64:
                raise EvaluationError(f"Scalar value {_go_number(minimum)} underflows int64")
            if maximum >= _MAX_INT64:
                raise EvaluationError(f"Scalar value {_go_number(maximum)} overflows int64")

    def invalid_quantiles(self) -> list[float]:
        """The parameters of quantile that Prometheus warns about: NaN, the largest above 1, the smallest below 0."""
        if self.aggregator is not Aggregator.QUANTILE or not len(self.numbers):
            return []
        minimum, maximum = float(self.numbers.min()), float(self.numbers.max())
        nan = [float("nan")] if np.isnan(maximum) else []
        return [*nan, *([maximum] if maximum > 1 else []), *([minimum] if minimum < 0 else [])]


def _go_number(value: float) -> str:
    """A large number in Go's format."""
    return {np.inf: "+Inf", -np.inf: "-Inf"}.get(value) or repr(value)


def rows_by_group(group_of: Rows, groups: int) -> tuple[Rows, I64s]:
    """The rows sorted by group, stably, and the start of each group among them."""
    starts = np.zeros(groups + 1, dtype=np.int64)
    np.cumsum(np.bincount(group_of, minlength=groups), out=starts[1:])
    return np.argsort(group_of, kind="stable"), starts
