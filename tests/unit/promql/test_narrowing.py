"""Matchers that are pushed from the left to the right side of `and` and `unless`."""

from random import Random

import numpy as np
import pytest

from strandline.promql.annotations import NONE
from strandline.promql.engine import Prepared, evaluate, prepare
from strandline.promql.errors import EvaluationError, ParseError
from strandline.promql.evaluation.evaluator import FragmentValue
from strandline.promql.evaluation.results import Result
from strandline.promql.local import LocalEngine, split
from strandline.promql.parser import parse
from strandline.promql.plan.fragments import AnyFragment
from strandline.promql.plan.planning import plan
from strandline.promql.plan.query_times import QueryTimes
from strandline.promql.plan.splitting import split_plan
from strandline.promql.printing import print_matcher
from support.promql_expressions import ExpressionGenerator, Vocabulary

pytestmark = pytest.mark.unit

MINUTE = 60_000
START = 1_700_000_040_000
NOW = QueryTimes.instant(START)
EXPRESSIONS = 300


def pushed(text: str) -> list[str]:
    """The matchers that are pushed to each selector, in the order of the fragments."""
    return [", ".join(map(print_matcher, fragment.pushed)) for fragment in prepare(text, NOW).fragments]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a{x='1'} and b", ["", 'x="1"']),
        ("a{x='1'} unless b", ["", 'x="1"']),
        ("a{x=~'1|2',y!='3',z!~'4'} and b", ["", 'x=~"1|2"']),
        ("a{x=''} and b", ["", 'x=""']),
        ("a{x='1',y='2'} and on (x) b", ["", 'x="1"']),
        ("a{x='1',y='2'} and ignoring (x) b", ["", 'y="2"']),
        ("a{x='1'} and on () b", ["", ""]),
        ("a{x='1'} and on (__name__, x) b", ["", 'x="1"']),
        ("a{x='1'} and b{x='1'}", ["", ""]),
        ("a{x='1'} and b offset 1h @ 5", ["", 'x="1"']),
        ("rate(a{x='1'}[5m]) > 2 and sum by (x) (rate(b_total[5m])) * 3", ["", 'x="1"']),
        ("sum by (x) (a{x='1',y='2'}) and b", ["", 'x="1"']),
        ("sum without (x) (a{x='1',y='2'}) and b", ["", 'y="2"']),
        ("topk(1, a{x='1'}) and b", ["", 'x="1"']),
        ("count_values('x', a{x='1'}) and b", ["", ""]),
        ("a{x='1'} and b and c", ["", 'x="1"', 'x="1"']),
        ("a and (b{x='1'} and c)", ["", "", 'x="1"']),
        ("a and b{x='1'} unless c", ["", "", 'x="1"']),
        ("a{x='1'} or b{x='1'} and c", ["", "", 'x="1"']),
        ("(a{x='1'} or b{x='1',y='2'}) and c", ["", "", 'x="1"']),
        ("a{x='1'} and (b or c)", ["", 'x="1"', 'x="1"']),
        ("a{x='1'} and (b or on (y) c)", ["", "", 'x="1"']),
        ("a{x='1'} + b{y='2'} and c", ["", "", 'x="1", y="2"']),
        ("a{x='1'} + on (y) b{y='2'} and c", ["", "", 'y="2"']),
        ("a{x='1'} + on (y) group_left (z) b{x='3',y='2',z='4'} and c", ["", "", 'x="1", y="2", z="4"']),
        ("a{x='1'} + on (y) group_left (x) b and c", ["", "", ""]),
        ("label_replace(a{x='1',y='2'}, 'x', '$1', 'y', '(.*)') and b", ["", 'y="2"']),
        ("histogram_quantile(0.9, a{x='1',le='2'}) and b", ["", 'x="1"']),
        ("max_over_time((a{x='1'} > 2)[5m:]) and max_over_time(b[5m:])", ["", 'x="1"']),
        ("vector(1) and b", [""]),
        ("absent(a{x='1'}) and b", ["", ""]),
    ],
)
def test_matchers_of_the_left_side_are_pushed_to_the_right_side(text: str, expected: list[str]) -> None:
    assert pushed(text) == expected


@pytest.mark.parametrize(
    "right",
    [
        # Additional series may be an error.
        "b + c",
        "b * on (x) group_left c",
        "label_replace(b, 'y', '$1', 'x', '(.*)')",
        "label_join(b, 'y', '', 'x')",
        "rate({y='2'}[5m])",
        "max_over_time({y='2'}[5m])",
        "timestamp({y='2'})",
        "-{y='2'}",
        "abs(b or c)",
        "sum by (__name__, x) ({y='2'}) * 2",
        # The function has an annotation about some or all series.
        "rate(b[5m])",
        "increase(b[5m])",
        "rate(b_total[5m:])",
        "quantile_over_time(2, b[5m])",
        "quantile by (x) (2, b)",
        "histogram_quantile(0.5, b)",
        # Series with other labels matter, too.
        "absent(b)",
        "vector(scalar(b))",
        "sum by (y) (b)",
        "sum without (x) (b)",
        "topk(1, b)",
        "topk by (y) (1, b)",
        "count_values by (y) ('x', b)",
        "count_values by (x) ('x', b)",
    ],
)
def test_nothing_is_pushed_where_an_error_an_annotation_or_another_series_depends_on_it(right: str) -> None:
    assert not any(pushed(f"a{{x='1'}} and {right}"))


@pytest.mark.parametrize(
    "right",
    [
        "rate(b_total[5m])",
        "-b",
        "timestamp(b)",
        "last_over_time({y='2'}[5m])",
        "quantile_over_time(0.5, b[5m])",
        "sum without (y) (b)",
        "quantile by (x) (0.5, b)",
        "topk by (x) (1, b)",
        "count_values by (x) ('y', b)",
        "sort(b)",
        "abs(sum by (x) ({y='2'}))",
    ],
)
def test_matchers_are_pushed_through_nodes_that_keep_the_label_and_have_no_annotations(right: str) -> None:
    assert pushed(f"a{{x='1'}} and {right}") == ["", 'x="1"']


def test_nothing_is_pushed_if_a_selector_would_be_read_twice() -> None:
    assert pushed("(a{x='1'} and b) + b") == ["", ""]
    assert pushed("(a{x='1'} and b) + b{x='1'}") == ["", 'x="1"'], "it is read once instead of twice"


WORDS = Vocabulary(
    metrics=("requests_total", "latency_bucket", "temperature"),
    labels={"job": ("a", "b"), "instance": ("1", "2", "3", ""), "le": ("0.5", "1", "+Inf")},
    durations=("1m", "5m", "7m30s", "20m"),
    moments=(str(START / 1000), "start()", "end()"),
)


def engine() -> LocalEngine:
    """Series with common labels, some of which lack a label."""
    random = Random(3)  # noqa: S311 - the same each time
    series = []
    for metric in WORDS.metrics:
        for job in ("a", "b", "ab"):
            for instance in ("1", "2", "x", ""):
                le = random.choice(("0.5", "1", ""))
                times = range(START - 30 * MINUTE, START + 20 * MINUTE, random.randrange(15_000, 400_000))
                labels = {"__name__": metric, "job": job, "instance": instance, "le": le}
                series.append((labels, [(time, float(random.randrange(-2, 5))) for time in times]))
    return LocalEngine(split(series, 2))


def without_pushing(text: str, times: QueryTimes) -> Prepared:
    expression = parse(text)
    parts = split_plan(plan(expression, times, query=text))
    return Prepared(text, expression, times, parts.fragments, parts.rest)


def outcome(engine: LocalEngine, prepared: Prepared) -> tuple[Result | str, bool]:
    """The result of a query, and whether any matcher was pushed."""
    fetched, annotations = dict[AnyFragment, FragmentValue](), NONE
    try:
        for fragment in prepared.fragments:
            fetched[fragment], found = engine.fetch(fragment)
            annotations |= found
        return evaluate(prepared, fetched, annotations), any(fragment.pushed for fragment in prepared.fragments)
    except EvaluationError as error:
        return error.message, any(fragment.pushed for fragment in prepared.fragments)


def listed(result: Result) -> dict[bytes, tuple[list[int], bytes]]:
    points = result.points
    if points is None:
        return {b"": ([], np.array([result.number]).tobytes())}
    return {
        points.keys.key(series): (
            points.time[points.first_point[series] : points.first_point[series + 1]].tolist(),
            points.value[points.first_point[series] : points.first_point[series + 1]].tobytes(),
        )
        for series in range(len(points))
    }


def test_random_expressions_have_the_same_answer_with_and_without_pushed_matchers() -> None:
    """Answers compared by their bits, error messages, and annotations."""
    local, narrowed, answered = engine(), 0, 0
    times = (NOW, QueryTimes(START - 5 * MINUTE, START + 10 * MINUTE, 3 * MINUTE))
    random = Random(20261119)  # noqa: S311 - the same each time
    generator = ExpressionGenerator(random, WORDS, duration_arithmetic=False)
    for number in range(EXPRESSIONS):
        left = random.choice(WORDS.metrics) + random.choice(("{job='a'}", "{job=~'a|b',instance='1'}", "{instance=''}"))
        if random.random() < 0.5:
            left = generator.vector(2)
        operator = random.choice(("and", "unless", "and on (job)", "and ignoring (le)", "unless on (job, instance)"))
        text = f"({left}) {operator} ({generator.vector(2)})"
        try:
            prepared = prepare(text, times[number % 2])
        except ParseError:
            continue
        found, has_pushed = outcome(local, prepared)
        expected, _ = outcome(local, without_pushing(text, times[number % 2]))
        narrowed += has_pushed
        if isinstance(found, str) or isinstance(expected, str):
            assert found == expected, text
            continue
        assert listed(found) == listed(expected), text
        assert found.annotations == expected.annotations, text
        answered += has_pushed and bool(listed(found))
    assert narrowed > EXPRESSIONS // 4, "filters are pushed in many of them"
    assert answered > EXPRESSIONS // 10, "and many of those have an answer"
