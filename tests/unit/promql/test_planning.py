"""Plans: what a query reads and evaluates, and how often."""

import numpy as np
import pytest

from strandline.promql.engine import prepare
from strandline.promql.plan import nodes
from strandline.promql.plan.fragments import Fragment, MapLink, OperatorLink, SamplesFragment
from strandline.promql.plan.query_times import QueryTimes

pytestmark = pytest.mark.unit

MINUTE = 60_000
START = 1_700_000_040_000 // MINUTE * MINUTE
RANGE = QueryTimes(START, START + 10 * MINUTE, MINUTE)
NOW = QueryTimes.instant(START)


def only_fragment(text: str, times: QueryTimes = RANGE) -> Fragment:
    [fragment] = prepare(text, times).fragments
    assert isinstance(fragment, Fragment)
    return fragment


@pytest.mark.parametrize(
    ("text", "steps"), [("m @ 1.5", 1), ("sum(rate(m[5m] @ end()))", 1), ("max_over_time(m[1h:] @ 0)", 60)]
)
def test_step_invariant_expressions_are_evaluated_once(text: str, steps: int) -> None:
    rest = prepare(text, RANGE).rest
    assert isinstance(rest, nodes.Repeat)
    assert rest.count == RANGE.grid.count
    assert only_fragment(text).ends.count == steps


@pytest.mark.parametrize("text", ["m", "time() - m @ 0 + m", "predict_linear(m[5m] @ 0, 60)"])
def test_other_expressions_are_evaluated_at_each_step(text: str) -> None:
    prepared = prepare(text, RANGE)
    assert not isinstance(prepared.rest, nodes.Repeat)
    counts = [fragment.ends.count for fragment in prepared.fragments if isinstance(fragment, Fragment)]
    assert RANGE.grid.count in counts


def test_equal_selectors_are_read_once() -> None:
    assert len(prepare("rate(m[5m]) / (rate(m[5m]) + rate(m[6m]))", RANGE).fragments) == 2


@pytest.mark.parametrize(
    ("text", "first"), [("m", 5 * MINUTE), ("rate(m[7m])", 7 * MINUTE), ("m offset 2m", 7 * MINUTE)]
)
def test_a_fragment_reads_samples_after_the_start_of_its_first_window(text: str, first: int) -> None:
    assert only_fragment(text).first == START - first + 1


def test_raw_samples_are_read_after_the_start_of_the_range() -> None:
    assert [type(fragment) for fragment in prepare("m[5m]", NOW).fragments] == [SamplesFragment]
    assert [(fragment.first, fragment.last) for fragment in prepare("m[5m] offset 1m", NOW).fragments] == [
        (START - 6 * MINUTE + 1, START - MINUTE)
    ]


def test_steps_of_a_subquery_are_multiples_of_its_step_after_the_start_of_its_range() -> None:
    # Both ends are multiples: only the right one is a step.
    assert only_fragment("max_over_time(m[10m:1m])", NOW).ends.timestamps().tolist() == [
        START - 9 * MINUTE + at * MINUTE for at in range(10)
    ]
    shifted = QueryTimes.instant(START + 10_000)
    np.testing.assert_array_equal(
        only_fragment("max_over_time(m[3m:1m])", shifted).ends.timestamps(), START - np.array([2, 1, 0]) * MINUTE
    )


def test_constants_are_evaluated_before_anything_is_read() -> None:
    fragment = only_fragment("clamp_min(m, -(1 + 2)) * (pi() * 0 + 4)")
    mapped, multiplied = fragment.chain
    assert isinstance(mapped, MapLink)
    assert isinstance(multiplied, OperatorLink)
    assert (mapped.parameters, multiplied.scalar) == (((-3.0,),), (4.0,))


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        ("sum(rate(m[5m]))", True),
        ("sum(rate({a='b'}[5m]))", False),
        ("sum({a='b'})", True),
        ("sum({a='b'} > 2)", True),
        ("sum({a='b'} > bool 2)", False),
        ("sum(sum by (a) (m))", False),
        ("topk(scalar(m), m)", False),
    ],
)
def test_shards_aggregate_where_series_are_distinct_without_names(text: str, *, is_whole: bool) -> None:
    """Two series that differ only in their names may be in different shards."""
    assert isinstance(prepare(text, NOW).rest, nodes.Fetched) is is_whole
