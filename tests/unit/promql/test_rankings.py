"""Aggregations that select series, such as topk, for any division of the series into blocks and shards."""

import random

import numpy as np
import pytest

from strandline.promql.aggregation.spec import AggregationSpec
from strandline.promql.aggregations import aggregate
from strandline.promql.errors import EvaluationError
from strandline.promql.expressions import Aggregator
from support.aggregated_vectors import (
    INF,
    NAN,
    Cells,
    all_evaluations,
    cells,
    column,
    some_vector,
    spec_of,
    vector,
)

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("aggregator", [Aggregator.TOPK, Aggregator.BOTTOMK])
def test_any_split_gives_the_best_series_of_each_group_and_step(aggregator: Aggregator) -> None:
    source = random.Random(7)  # noqa: S311 - not for secrets
    all_series = some_vector(source, 80, 6)
    limits = [0.0, 1.9, 3.0, -5.0, 10.0, 1000.0]
    spec = AggregationSpec(aggregator, ("job",), parameter=np.array(limits))
    best: Cells = {}
    by_job: dict[str, Cells] = {}
    for labels, values in cells(all_series).items():
        by_job.setdefault(dict(labels)["job"], {})[labels] = values
    for series in by_job.values():
        for step, limit in enumerate(limits):
            present = [(value, labels) for labels, values in series.items() if (value := values[step]) is not None]
            present.sort(reverse=aggregator is Aggregator.TOPK)
            for value, labels in present[: max(int(limit), 0)]:
                best.setdefault(labels, [None] * len(limits))[step] = value
    for found in all_evaluations(spec, source, all_series):
        assert found == best


@pytest.mark.parametrize("seed", range(3))
def test_of_equal_values_the_first_by_labels_are_kept_in_any_split(seed: int) -> None:
    source = random.Random(seed)  # noqa: S311 - not for secrets
    all_series = vector(*(({"i": f"{i:02}"}, [1.0, NAN]) for i in range(40)))
    for found in all_evaluations(spec_of(Aggregator.TOPK, 2, 3), source, all_series):
        assert [labels for labels, values in sorted(found.items())] == [(("i", f"{i:02}"),) for i in range(3)]


def test_at_a_single_step_the_best_come_first_group_by_group_and_nan_last() -> None:
    series = vector(*(({"g": g, "i": str(i)}, [v]) for g in "ab" for i, v in enumerate((NAN, 1.0, 3.0, INF, 2.0))))
    top = aggregate(spec_of(Aggregator.TOPK, 1, 5, "g"), series)
    assert ["".join(dict(labels).values()) for labels in cells(top)] == [
        "a3",
        "a2",
        "a4",
        "a1",
        "a0",
        "b3",
        "b2",
        "b4",
        "b1",
        "b0",
    ]
    bottom = aggregate(spec_of(Aggregator.BOTTOMK, 1, 4, "g"), series)
    assert ["".join(dict(labels).values()) for labels in cells(bottom)] == [
        "a1",
        "a4",
        "a2",
        "a3",
        "b1",
        "b4",
        "b2",
        "b3",
    ]


def test_of_equal_values_those_whose_labels_come_first_are_kept_and_sorted_first() -> None:
    # Prometheus keeps 01 of the first: a greater value that comes later takes the first one's place in its heap.
    for values, kept in (((1.0, 1.0, 2.0), "2 0"), ((2.0, 1.0, 1.0), "0 1"), ((NAN, NAN, NAN), "0 1")):
        top = aggregate(spec_of(Aggregator.TOPK, 1, 2), column(*values))
        assert list(cells(top)) == [(("i", f"0{number}"),) for number in kept.split()]
    assert list(cells(aggregate(spec_of(Aggregator.BOTTOMK, 1, 2), column(1.0, 2.0, -0.0, 0.0)))) == [
        (("i", "02"),),
        (("i", "03"),),
    ]


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ([1.0, NAN], "Parameter value is NaN"),
        ([NAN], "Parameter value is NaN"),
        ([1.0, 1e19], r"Scalar value 1e\+19 overflows int64"),
        ([INF], r"Scalar value \+Inf overflows int64"),
        ([1.0, -1e19], r"Scalar value -1e\+19 underflows int64"),
    ],
)
def test_limits_that_are_not_counts_are_rejected(limits: list[float], message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        AggregationSpec(Aggregator.TOPK, parameter=np.array(limits)).check()


@pytest.mark.parametrize("limits", [[-1e19], [-INF, 0.5], [9.2e18], []])
def test_limits_below_1_keep_nothing_and_large_ones_all(limits: list[float]) -> None:
    AggregationSpec(Aggregator.TOPK, parameter=np.array(limits)).check()
