"""PromQL evaluated by a node of simulated shards, and over the same samples in one place."""

from collections.abc import Sequence

import numpy as np

from strandline.arrays import F64s, I64s
from strandline.node.query.answers import FragmentResult
from strandline.node.query.queries import EvaluationLimits
from strandline.promql.annotations import NONE
from strandline.promql.engine import evaluate, prepare
from strandline.promql.evaluation.results import Result
from strandline.promql.local import LocalEngine, MemoryShard
from strandline.promql.plan.fragments import AnyFragment
from strandline.promql.plan.query_times import QueryTimes
from support.query_worlds import NodeWorld, expected_samples, labels_of

LIMITS = EvaluationLimits(max_series=1000, max_samples=100_000)


def evaluate_on_node(node: NodeWorld, text: str, times: QueryTimes, limits: EvaluationLimits = LIMITS) -> Result:
    """The result of a query to the node, which must have no warnings."""
    prepared = prepare(text, times)
    results: dict[AnyFragment, FragmentResult] = {
        fragment: node.evaluate(fragment, limits) for fragment in prepared.fragments
    }
    annotations = NONE
    for result in results.values():
        assert result.warnings == (), result.warnings
        annotations |= result.annotations
    return evaluate(prepared, {fragment: result.value for fragment, result in results.items()}, annotations)


def local_engine(node: NodeWorld) -> LocalEngine:
    """All samples of a node, with complete series."""
    expected = expected_samples(node.worlds)
    series = [({"__name__": metric, "name": name}, samples) for (metric, name), samples in expected.items()]
    return LocalEngine([MemoryShard(series)])


def same(found: Result, expected: Result, about: str = "") -> None:
    """Compare two results. The order of the series of a vector does not matter."""
    assert found.kind == expected.kind, about
    assert found.annotations == expected.annotations, about
    if found.points is None or expected.points is None:
        np.testing.assert_allclose(found.number, expected.number, rtol=1e-9, err_msg=about)
        return
    ours, theirs = (series_of(result) for result in (found, expected))
    assert ours.keys() == theirs.keys(), about
    for labels, (time, value) in theirs.items():
        assert ours[labels][0].tolist() == time.tolist(), about
        np.testing.assert_allclose(ours[labels][1], value, rtol=1e-9, err_msg=about)


def series_of(result: Result) -> dict[Sequence[tuple[str, str]], tuple[I64s, F64s]]:
    """Times and values of each series."""
    points = result.points
    assert points is not None
    bounds = points.first_point
    return {
        labels: (points.time[bounds[place] : bounds[place + 1]], points.value[bounds[place] : bounds[place + 1]])
        for place, labels in enumerate(labels_of(points.keys))
    }
