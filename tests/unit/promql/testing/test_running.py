"""The findings for the evaluations of a test script."""

from collections import Counter
from pathlib import Path

import pytest

from strandline.promql.testing.comparison import is_close
from strandline.promql.testing.running import FEATURE_FLAG, Finding, Outcome, run
from strandline.promql.testing.script_parser import parse_script
from strandline.promql.values import STALE

pytestmark = pytest.mark.unit

SCRIPT = Path(__file__).parents[3] / "data" / "promql" / "format.test"
LOADED = """load 1m
  c_total{x="a"} 0+60x10
  c_total{x="b"} 0+120x10
  g 1 2 3 stale

"""


def only(evaluation: str, *, loaded: str = LOADED) -> Finding:
    """The finding of one evaluation."""
    [found] = run(parse_script(loaded + evaluation))
    return found


def test_the_example_script_passes() -> None:
    findings = list(run(parse_script(SCRIPT.read_text(encoding="utf-8"))))
    assert [
        (finding.line, finding.reason, finding.variant) for finding in findings if finding.outcome is Outcome.FAILED
    ] == []
    skipped = {finding.query: finding.reason for finding in findings if finding.outcome is Outcome.SKIPPED}
    assert skipped == {"histogram_count(latency)": "native histograms", "size": "native histograms"}
    assert Counter(finding.outcome for finding in findings)[Outcome.PASSED] > 20


@pytest.mark.parametrize(
    ("evaluation", "reason"),
    [
        ("eval instant at 2m g\n g 4", "expected 4 for g, got 3"),
        ("eval instant at 2m g", "unexpected series g with 3@120s"),
        ("eval instant at 2m g\n g 3\n h 1", "expected series h is missing"),
        ("eval instant at 2m g\n 3", "expected the scalar 3, got an instant vector"),
        ("eval instant at 2m g\n expect string '3'", 'expected the string "3", got an instant vector'),
        ("eval instant at 2m 3\n g 3", "expected a vector, got the scalar 3"),
        ("eval instant at 2m 3\n 4", "expected the scalar 4, got 3"),
        ("eval instant at 2m 'a'\n expect string 'b'", 'expected the string "b", got "a"'),
        ("eval instant at 2m g[5m]", "got a range vector; write expect range vector if this is expected"),
        (
            "eval range from 0 to 3m step 1m g\n g 1 2 3 3",
            "g: expected 1@0s 2@60s 3@120s 3@180s, got 1@0s 2@60s 3@120s",
        ),
        ("eval range from 0 to 2m step 1m g\n g 1 5 3", "g: expected 5 at 60s, got 2"),
        ("eval range from 0 to 1m step 1m g\n g 1 2 3", "g: expected 3 values, but there are only 2 steps"),
        ("eval range from 0 to 1m step 1m g\n expect ordered\n g 1 2", "expect ordered has no effect"),
        (
            'eval instant at 1m sort(c_total)\n expect ordered\n c_total{x="b"} 120\n c_total{x="a"} 60',
            'expected c_total{x="b"} at position 1, got c_total{x="a"}',
        ),
        ("eval instant at 2m g\n expect fail", "expected to fail with any message, but the query succeeded"),
        ("eval instant at 2m g +\n g 3", "1:4: parse error: unexpected end of input"),
        ("eval instant at 2m c_total * on () c_total\n expect fail msg: x", "expected to fail with 'x', got: "),
        ("eval instant at 2m g\n expect warn\n g 3", "expected warning any message, got none"),
        (
            "eval instant at 2m rate(g[2m])\n expect no_info\n {} 0.0166667",
            "unexpected info: PromQL info: metric might",
        ),
        ("eval instant at 2m rate(g[2m])\n expect info msg: x\n {} 0.0166667", "expected info 'x', got PromQL info"),
    ],
)
def test_differences_are_reported(evaluation: str, reason: str) -> None:
    found = only(evaluation)
    assert found.outcome is Outcome.FAILED
    assert found.reason.startswith(reason)
    assert found.line == 6


def test_values_may_differ_by_a_millionth_of_their_sum() -> None:
    assert is_close(1.0, 1.0000019)
    assert not is_close(1.0, 1.0000021)
    assert not is_close(0.0, 1e-300), "nothing is close to zero"
    assert is_close(float("nan"), -float("nan"))
    assert is_close(float("inf"), float("inf"))
    assert not is_close(float("nan"), float(STALE))


def test_an_evaluation_that_needs_a_feature_flag_is_skipped_even_if_it_expects_a_failure() -> None:
    for expected in ("{} 1", "expect fail"):
        found = only(f"eval instant at 2m mad_over_time(g[2m])\n {expected}")
        assert (found.outcome, found.reason) == (Outcome.SKIPPED, FEATURE_FLAG)
    refused = only("eval instant at 2m limitk(1, g)\n expect fail regex: limitk\\(\\) is experimental")
    assert refused.outcome is Outcome.PASSED, "the script expects the refusal"


def test_only_evaluations_that_read_native_histograms_are_skipped() -> None:
    loaded = "load 5m\n m 1 2 _ _ {{count:1}}\n\n"
    for evaluation, outcome in (
        ("eval instant at 5m m\n m 2", Outcome.PASSED),
        ("eval instant at 20m m\n m 2", Outcome.SKIPPED),
        ("eval instant at 19m m", Outcome.SKIPPED),
        ("eval instant at 18m m", Outcome.PASSED),
        ("eval instant at 25m m offset 20m\n m 2", Outcome.PASSED),
        ("eval range from 0 to 20m step 20m m\n m 1", Outcome.SKIPPED),
    ):
        found = only(evaluation, loaded=loaded)
        assert found.outcome is outcome, (evaluation, found)


def test_loads_add_up_and_clear_removes_them() -> None:
    loads = "load 1m\n a 1 _ 3\n\nload 30s\n a _ _ 2\n b 1\n\n"
    evaluations = "eval range from 0 to 2m step 1m a\n a 1 2 3\n\nclear\neval instant at 0 a"
    assert [finding.outcome for finding in run(parse_script(loads + evaluations))] == [Outcome.PASSED, Outcome.PASSED]


def test_an_instant_evaluation_is_also_evaluated_as_a_range_and_pinned() -> None:
    # Only the middle step is compared; at another one the query fails, which an instant query would not show.
    found = only('eval instant at 0 label_replace(a, "x", "", "", "")\n a 1', loaded='load 1m\n a 1\n a{x="1"} _ 1\n\n')
    assert found.outcome is Outcome.FAILED
    assert found.reason == "vector cannot contain metrics with the same labelset"
    assert found.variant == "1 shard, in the middle of a range query"
