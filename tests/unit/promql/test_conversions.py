"""`vector`, `scalar`, `time`, `absent` and `sort`."""

import math

import numpy as np
import pytest

from strandline.index.documents import decode_part_key
from strandline.index.matchers import Matcher, MatchOp
from strandline.promql.absence import absent, absent_labels
from strandline.promql.arithmetic import missing
from strandline.promql.conversions import constant, scalar, time, vector, without_labels
from strandline.promql.evaluation.calls import sorted_rows
from strandline.promql.expressions import DurationNumber, MatrixSelector, Negation, Parentheses, Span, VectorSelector
from strandline.promql.values import NO_SAMPLE, Grid, Scalar, Vector

pytestmark = pytest.mark.unit

HERE = Span(0, 1)
GRID = Grid(1_500, 1_000, 4)
NAN = math.nan


def selector(*matchers: Matcher) -> VectorSelector:
    return VectorSelector("up", matchers, HERE)


def equal(label: str, value: str) -> Matcher:
    return Matcher(label, MatchOp.EQUAL, value)


def test_scalars_of_the_grid() -> None:
    assert time(GRID).values.tolist() == [1.5, 2.5, 3.5, 4.5]
    assert constant(math.pi, GRID).values.tolist() == [math.pi] * 4


def test_a_vector_of_a_scalar_has_no_labels() -> None:
    made = vector(Scalar(np.array([1.0, NAN])))
    assert decode_part_key(made.keys.key(0)) == {}
    np.testing.assert_array_equal(made.values, [[1.0, NAN]])


def test_only_a_single_sample_is_a_scalar() -> None:
    values = np.array([[1.0, NO_SAMPLE, NO_SAMPLE, 4.0], [NO_SAMPLE, NO_SAMPLE, NAN, 5.0]])
    found = scalar(Vector(without_labels(), values)).values
    np.testing.assert_array_equal(found, [1.0, NAN, NAN, NAN])
    assert not missing(found).any()
    assert np.isnan(scalar(Vector(without_labels(), np.empty((0, 2)))).values).all()


def test_absent_returns_a_series_where_no_series_has_a_sample() -> None:
    made = absent({"job": "api"}, np.array([[NO_SAMPLE, 1.0, NO_SAMPLE], [NO_SAMPLE, NAN, 0.0]]))
    assert decode_part_key(made.keys.key(0)) == {"job": "api"}
    assert missing(made.values).tolist() == [[False, True, True]]
    assert made.values[0, 0] == 1
    assert absent({}, np.empty((0, 2))).values.tolist() == [[1.0, 1.0]]


def test_absent_has_the_labels_with_a_single_equality_matcher() -> None:
    job, instance = equal("job", "api"), equal("instance", "a")
    name = equal("__name__", "up")
    chosen = selector(job, instance, Matcher("zone", MatchOp.MATCH, "z"), name)
    assert absent_labels(chosen) == {"job": "api", "instance": "a"}
    assert absent_labels(MatrixSelector(chosen, DurationNumber(60, HERE), HERE)) == {"job": "api", "instance": "a"}
    assert absent_labels(Parentheses(Parentheses(selector(job), HERE), HERE)) == {"job": "api"}
    assert absent_labels(Negation(chosen, HERE)) == {}
    # A label with several matchers is omitted, unless the last one is its only equality matcher.
    assert absent_labels(selector(job, job, instance)) == {"instance": "a"}
    assert absent_labels(selector(job, Matcher("job", MatchOp.NOT_EQUAL, "b"))) == {}
    assert absent_labels(selector(Matcher("job", MatchOp.NOT_EQUAL, "b"), job)) == {"job": "api"}


def test_nan_is_sorted_last_both_ways() -> None:
    values = np.array([NAN, 2.0, NO_SAMPLE, -math.inf, 2.0, math.inf])
    assert sorted_rows(values).tolist() == [3, 1, 4, 5, 0]
    assert sorted_rows(values, is_descending=True).tolist() == [5, 1, 4, 3, 0]
