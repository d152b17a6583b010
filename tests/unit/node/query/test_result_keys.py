"""The cache keys of fragments' results."""

from itertools import combinations

import pytest

from strandline.node.query.result_keys import result_key
from strandline.promql.engine import prepare
from strandline.promql.plan.fragments import Fragment
from strandline.promql.plan.query_times import QueryTimes

pytestmark = pytest.mark.unit

STEP = 60_000
TIMES = QueryTimes(STEP, 61 * STEP, STEP)


def key(text: str, times: QueryTimes = TIMES, max_samples: int = 100) -> bytes | None:
    (fragment,) = prepare(text, times).fragments
    assert isinstance(fragment, Fragment)
    return result_key(fragment, max_samples)


def test_fragments_with_different_results_have_different_keys() -> None:
    texts = [
        "a",
        "b",
        'a{x="1"}',
        'a{x="1",y="2"}',
        "timestamp(a)",
        "rate(a[5m])",
        "rate(a[6m])",
        "rate(a[5m] offset 1m)",
        "predict_linear(a[5m] offset 1m, 60)",
        "predict_linear(a[5m], 60)",
        "predict_linear(a[5m], 61)",
        "a * 0",
        "a * -0",
        "0 * a",
        "clamp(a, 0, 1)",
        "clamp(a, -0, 1)",
        "-a",
        "sum(a)",
        "sum by (x) (a)",
        "sum without (x) (a)",
        "topk(1, a)",
        "topk(2, a)",
        'count_values("v", a)',
        'count_values("w", a)',
    ]
    keys = [key(text) for text in texts]
    assert None not in keys
    assert [pair for pair in combinations(texts, 2) if key(pair[0]) == key(pair[1])] == []


def test_limits_and_lookback_are_part_of_the_key() -> None:
    assert key("a") != key("a", max_samples=99)
    assert key("a") != key("a", QueryTimes(TIMES.start, TIMES.end, STEP, lookback=1))


def test_a_range_that_moves_by_full_steps_keeps_its_key() -> None:
    for steps in (-1, 1, 1_000):
        assert key("a", QueryTimes(TIMES.start + steps * STEP, TIMES.end + steps * STEP, STEP)) == key("a")
    assert key("a", QueryTimes(TIMES.start + 1, TIMES.end + 1, STEP)) != key("a")


@pytest.mark.parametrize(
    "text",
    ["a @ 0", "a @ end()", "a > time()", "clamp_min(a, time())", "quantile(time(), a)", "topk(0, a)", "topk(NaN, a)"],
)
def test_a_fragment_that_depends_on_more_than_its_windows_has_no_key(text: str) -> None:
    assert key(text) is None


def test_a_single_step_has_no_key() -> None:
    assert key("a", QueryTimes.instant(STEP)) is None
    assert key("a", QueryTimes(STEP, STEP, STEP)) is None
