"""Aggregations, compared with plain Python, for any division of the series into blocks and shards."""

import math
import random
from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from strandline.promql.aggregation.counting import go_decimal
from strandline.promql.aggregation.spec import AggregationSpec
from strandline.promql.aggregations import GroupedAccumulator, accumulate, aggregate, finish, merge
from strandline.promql.errors import EvaluationError
from strandline.promql.expressions import Aggregator
from strandline.promql.labels import groups
from strandline.promql.values import Vector
from support.aggregated_vectors import (
    INF,
    MAX,
    NAN,
    Labels,
    all_evaluations,
    cells,
    column,
    some_vector,
    spec_of,
    vector,
)

pytestmark = pytest.mark.unit


def only(found: Vector) -> float:
    [[value]] = cells(found).values()
    assert value is not None
    return value


def value_of(aggregator: Aggregator, *values: float | None, parameter: float | None = None) -> float:
    return only(aggregate(spec_of(aggregator, 1, parameter), column(*values)))


def expected(aggregator: Aggregator, values: list[float], quantile: float) -> float:
    """The definition of the aggregation, for finite values."""
    count = len(values)
    mean = math.fsum(values) / count
    variance = math.fsum((value - mean) ** 2 for value in values) / count
    rank = quantile * (count - 1)
    low = math.floor(rank)
    ordered = sorted(values)
    between = ordered[low] * (1 - rank + low) + ordered[min(low + 1, count - 1)] * (rank - low)
    return {
        Aggregator.SUM: math.fsum(values),
        Aggregator.AVG: mean,
        Aggregator.MIN: min(values),
        Aggregator.MAX: max(values),
        Aggregator.COUNT: float(count),
        Aggregator.GROUP: 1.0,
        Aggregator.STDVAR: variance,
        Aggregator.STDDEV: math.sqrt(variance),
        Aggregator.QUANTILE: between,
    }[aggregator]


@pytest.mark.parametrize("by", [(), ("job",), ("job", "i")])
@pytest.mark.parametrize(
    "aggregator",
    [
        *(Aggregator.SUM, Aggregator.AVG, Aggregator.MIN, Aggregator.MAX, Aggregator.COUNT, Aggregator.GROUP),
        *(Aggregator.STDDEV, Aggregator.STDVAR, Aggregator.QUANTILE),
    ],
)
def test_any_split_gives_the_value_of_each_group_and_step(aggregator: Aggregator, by: tuple[str, ...]) -> None:
    source = random.Random(len(by))  # noqa: S311 - not for secrets
    all_series = some_vector(source, 60, 7)
    quantiles = [0, 0.1, 0.25, 0.5, 0.77, 0.9, 1.0]
    spec = AggregationSpec(aggregator, by, parameter=np.array(quantiles))
    members: dict[Labels, list[list[float | None]]] = {}
    for labels, values in cells(all_series).items():
        members.setdefault(tuple(label for label in labels if label[0] in by), []).append(values)
    for found in all_evaluations(spec, source, all_series):
        assert found.keys() == members.keys()
        for group, rows in members.items():
            for step, quantile in enumerate(quantiles):
                present = [value for row in rows if (value := row[step]) is not None]
                answer = found[group][step]
                if not present:
                    assert answer is None
                else:
                    assert answer == pytest.approx(expected(aggregator, present, quantile), rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("by", [(), ("job",)])
def test_any_split_counts_the_same_values(by: tuple[str, ...]) -> None:
    source = random.Random(3)  # noqa: S311 - not for secrets
    all_series = some_vector(source, 50, 4, few_values=True)
    counts: dict[Labels, Counter[int]] = {}
    for labels, values in cells(all_series).items():
        for step, value in enumerate(values):
            if value is not None:
                group = {**{name: text for name, text in labels if name in by}, "value": f"{value:.0f}"}
                counts.setdefault(tuple(group.items()), Counter())[step] += 1
    for found in all_evaluations(AggregationSpec(Aggregator.COUNT_VALUES, by, parameter="value"), source, all_series):
        assert found == {
            group: [float(steps[step]) if steps[step] else None for step in range(4)] for group, steps in counts.items()
        }


def test_without_drops_the_metrics_name_and_by_keeps_only_what_it_names() -> None:
    series = vector(({"__name__": "m", "a": "1", "b": "2"}, [1.0]), ({"__name__": "n", "a": "1", "b": "3"}, [2.0]))
    assert cells(aggregate(AggregationSpec(Aggregator.SUM, ("b",), is_without=True), series)) == {(("a", "1"),): [3.0]}
    assert cells(aggregate(AggregationSpec(Aggregator.SUM, ("__name__",)), series)) == {
        (("__name__", "m"),): [1.0],
        (("__name__", "n"),): [2.0],
    }
    assert cells(aggregate(AggregationSpec(Aggregator.SUM), series)) == {(): [3.0]}


def test_sums_lose_nothing_to_rounding() -> None:
    assert value_of(Aggregator.SUM, 1.0, 1e100, 1.0, -1e100) == 2.0
    assert value_of(Aggregator.AVG, 1.0, 1e100, 1.0, -1e100) == 0.5
    halves = [accumulate(spec_of(Aggregator.SUM), column(*part)) for part in ((1.0, 1e100), (1.0, -1e100))]
    assert only(finish(spec_of(Aggregator.SUM), merge(spec_of(Aggregator.SUM), 1, halves))) == 2.0


def test_a_mean_survives_a_sum_that_overflows_in_any_split() -> None:
    source = random.Random(2)  # noqa: S311 - not for secrets
    values = [source.uniform(0.5, 1) * MAX for _ in range(40)]
    mean = math.fsum(value / 40 for value in values)
    for found in all_evaluations(spec_of(Aggregator.AVG), source, column(*values)):
        assert found == {(): [pytest.approx(mean, rel=1e-12)]}


@pytest.mark.parametrize(
    ("values", "variance"),
    [
        # The squares are too large for a double, whatever the order.
        ((1e200, -1e200, 0.0, 3.0), INF),
        ((0.4 * MAX, -0.4 * MAX, 0.3 * MAX, 1.0, 2.0), INF),
        ((0.9 * MAX, 0.0, 0.9 * MAX), INF),
        ((1e308, -1.2e308, 0.0, 0.0, 0.0, 0.0), INF),
        # So is the distance of a value from the mean of the others.
        ((MAX, -MAX), NAN),
        ((0.0, 0.0, 0.0, MAX, -0.5 * MAX), NAN),
        ((1.0, -MAX, 2.0, 0.5 * MAX, 3.0), NAN),
        # Values that are not finite have priority.
        ((INF, 1.0, 2.0), NAN),
        ((1e200, NAN, -1e200), NAN),
        # Nothing overflows.
        ((1e150, -1e150), 1e300),
        ((MAX, MAX, MAX), 0.0),
    ],
)
@pytest.mark.parametrize("shards", [1, 2, 5])
def test_a_variance_that_overflows_is_the_same_in_any_order_and_split(
    shards: int, values: tuple[float, ...], variance: float
) -> None:
    source = random.Random(shards)  # noqa: S311 - not for secrets
    orders = list(permutations(values))
    for order in source.sample(orders, min(len(orders), 24)):
        for aggregator, answer in ((Aggregator.STDVAR, variance), (Aggregator.STDDEV, variance**0.5)):
            spec = spec_of(aggregator)
            states = [accumulate(spec, column(*order[shard::shards])) for shard in range(min(shards, len(order)))]
            found = only(finish(spec, merge(spec, 1, states)))
            assert found == pytest.approx(answer, rel=1e-12, nan_ok=True), order


@pytest.mark.parametrize(
    ("aggregator", "values", "answer"),
    [
        (Aggregator.SUM, (1.0, INF, 2.0), INF),
        (Aggregator.SUM, (INF, -INF), NAN),
        (Aggregator.SUM, (1.0, NAN), NAN),
        (Aggregator.SUM, (MAX, MAX), INF),
        (Aggregator.AVG, (INF, 1.0, 2.0), INF),
        (Aggregator.AVG, (1.0, -INF), -INF),
        (Aggregator.AVG, (INF, -INF), NAN),
        (Aggregator.AVG, (NAN, 1.0), NAN),
        (Aggregator.AVG, (MAX, MAX, MAX), MAX),
        (Aggregator.MIN, (NAN, 2.0, NAN, 1.0), 1.0),
        (Aggregator.MAX, (NAN, 1.0, 2.0, NAN), 2.0),
        (Aggregator.MIN, (NAN, NAN), NAN),
        (Aggregator.MAX, (-INF, NAN), -INF),
        (Aggregator.COUNT, (NAN, None, INF), 2.0),
        (Aggregator.GROUP, (NAN, None), 1.0),
        (Aggregator.STDVAR, (INF,), NAN),
        (Aggregator.STDDEV, (1.0, NAN, 2.0), NAN),
        (Aggregator.STDDEV, (1.0, INF), NAN),
        (Aggregator.STDDEV, (5.0,), 0.0),
    ],
)
@pytest.mark.parametrize("is_split", [False, True])
def test_values_that_are_not_finite_count_as_in_prometheus(
    aggregator: Aggregator, values: tuple[float | None, ...], answer: float, *, is_split: bool
) -> None:
    spec = spec_of(aggregator)
    found = aggregate(spec, column(*values))
    if is_split:
        states = [accumulate(spec, column(value)) for value in values]
        found = finish(spec, merge(spec, 1, states))
    assert only(found) == pytest.approx(answer, rel=1e-15, abs=1e-300, nan_ok=True)


@pytest.mark.parametrize(
    ("quantile", "values", "answer"),
    [
        (NAN, (1.0,), NAN),
        (-0.1, (1.0,), -INF),
        (1.1, (NAN,), INF),
        (0.5, (NAN, 1.0, 2.0), 1.0),
        (0.0, (3.0, NAN), NAN),
        (0.25, (NAN, 1.0, 2.0), NAN),
        (0.25, (NAN, NAN, 1.0, 2.0, 3.0), NAN),
        (0.5, (NAN, NAN, 3.0, 1.0, 2.0), 1.0),
        # The neighbour has a weight of 0, and 0 * Inf is NaN.
        (0.5, (INF, -INF, 1.0), NAN),
        (0.5, (2.0, -INF, 1.0), 1.0),
        (1.0, (2.0, None, 3.0, 3.0), 3.0),
    ],
)
def test_quantiles_outside_of_0_to_1_are_infinite_and_nan_is_smallest(
    quantile: float, values: tuple[float | None, ...], answer: float
) -> None:
    assert value_of(Aggregator.QUANTILE, *values, parameter=quantile) == pytest.approx(answer, nan_ok=True)


def test_quantiles_that_are_warned_about() -> None:
    spec = AggregationSpec(Aggregator.QUANTILE, parameter=np.array([0.5, 2.0, 3.0, -1.0, -2.0]))
    assert spec.invalid_quantiles() == [3.0, -2.0]
    assert str(spec_of(Aggregator.QUANTILE, 2, NAN).invalid_quantiles()) == "[nan]"
    assert spec_of(Aggregator.QUANTILE, 2, 1.0).invalid_quantiles() == []


def test_values_are_formatted_without_exponents() -> None:
    written = {
        1.0: "1",
        0.1: "0.1",
        1e21: "1000000000000000000000",
        1.5e-7: "0.00000015",
        123456789.25: "123456789.25",
        2.0**53: "9007199254740992",
        INF: "+Inf",
        -INF: "-Inf",
        NAN: "NaN",
    }
    assert [go_decimal(number) for number in written] == list(written.values())
    assert go_decimal(-0.0) == "-0"


def test_the_label_of_count_values_replaces_one_of_the_series() -> None:
    series = vector(({"a": "1", "b": "x"}, [5.0]), ({"a": "2", "b": "x"}, [5.0]), ({"a": "3", "b": "y"}, [NAN]))
    assert cells(aggregate(AggregationSpec(Aggregator.COUNT_VALUES, ("b",), parameter="a"), series)) == {
        (("a", "5"), ("b", "x")): [2.0],
        (("a", "NaN"), ("b", "y")): [1.0],
    }
    assert cells(aggregate(AggregationSpec(Aggregator.COUNT_VALUES, ("b",), parameter="b"), series)) == {
        (("b", "5"),): [2.0],
        (("b", "NaN"),): [1.0],
    }
    without = AggregationSpec(Aggregator.COUNT_VALUES, ("b",), is_without=True, parameter="a")
    assert cells(aggregate(without, series)) == {(("a", "5"),): [2.0], (("a", "NaN"),): [1.0]}
    # If the label is dropped, the values are counted together.
    dropped = AggregationSpec(Aggregator.COUNT_VALUES, ("a", "b"), is_without=True, parameter="b")
    assert cells(aggregate(dropped, series)) == {(): [3.0]}
    with pytest.raises(EvaluationError, match='invalid label name ""'):
        AggregationSpec(Aggregator.COUNT_VALUES, parameter="").check()


def test_an_accumulator_accepts_known_groups() -> None:
    all_series = some_vector(random.Random(5), 30, 3)  # noqa: S311 - not for secrets
    spec = spec_of(Aggregator.SUM, 3, None, "job")
    found = groups(all_series.keys, ["job"], is_without=False)
    accumulator = GroupedAccumulator(spec, 3, found.keys)
    accumulator.add(all_series.keys, all_series.values, found.group_of)
    assert cells(finish(spec, accumulator.state())) == cells(aggregate(spec, all_series))


@pytest.mark.parametrize("aggregator", [a for a in Aggregator if a not in (Aggregator.LIMITK, Aggregator.LIMIT_RATIO)])
def test_without_series_the_result_is_empty(aggregator: Aggregator) -> None:
    parameter = "x" if aggregator is Aggregator.COUNT_VALUES else 1.0
    spec = spec_of(aggregator, 2, parameter)
    nothing = Vector(column().keys, np.empty((0, 2)))
    assert cells(aggregate(spec, nothing)) == {}
    assert cells(finish(spec, merge(spec, 2, [accumulate(spec, nothing), accumulate(spec, nothing)]))) == {}
    assert cells(finish(spec, merge(spec, 2, []))) == {}
