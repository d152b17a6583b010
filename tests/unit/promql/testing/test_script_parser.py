"""The format of test scripts, and errors in scripts."""

import math

import pytest

from strandline.promql.plan.query_times import QueryTimes
from strandline.promql.testing.commands import Clear, Evaluation, ExpectedAnnotations, Load, SeriesLine, Unsupported
from strandline.promql.testing.errors import ScriptError
from strandline.promql.testing.script_parser import parse_script
from strandline.promql.testing.series_notation import parse_series

pytestmark = pytest.mark.unit


def evaluation(text: str) -> Evaluation:
    """The only evaluation of a script."""
    [found] = parse_script(text)
    assert isinstance(found, Evaluation)
    return found


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("1 2 3", (1, 2, 3)),
        ("1+2x3", (1, 3, 5, 7)),
        ("7-2x3", (7, 5, 3, 1)),
        ("-2+-1x1", None),
        ("-5x2", (-5, -5, -5)),
        ("0x3", (0, 0, 0, 0)),
        ("_ _x3 1", (None, None, None, None, 1)),
        ("Inf -Inf +inf", (math.inf, -math.inf, math.inf)),
        ("1e3 .5 2.5e-1+1x1", (1000, 0.5, 0.25, 1.25)),
        ("\t1   2 ", (1, 2)),
    ],
)
def test_values_of_a_series_are_expanded(written: str, values: tuple[float | None, ...] | None) -> None:
    if values is None:
        with pytest.raises(ValueError, match="is not a value"):
            parse_series(f"m {written}")
    else:
        assert parse_series(f"m {written}") == SeriesLine({"__name__": "m"}, values)


def test_steps_add_up_in_floating_point_as_in_prometheus() -> None:
    assert parse_series("m 0+0.1x3").values == (0, 0.1, 0.2, 0.1 + 0.1 + 0.1)


@pytest.mark.parametrize(
    ("written", "labels"),
    [
        ("up 1", {"__name__": "up"}),
        ('up{job="a", empty=""} 1', {"__name__": "up", "job": "a"}),
        ("{} 1", {}),
        ('{"disk.used", "my label"="}"} 1', {"__name__": "disk.used", "my label": "}"}),
        ('job:up:sum{x="a b"} 1', {"__name__": "job:up:sum", "x": "a b"}),
    ],
)
def test_labels_of_a_series_are_those_of_a_selector(written: str, labels: dict[str, str]) -> None:
    assert parse_series(written) == SeriesLine(labels, (1.0,))


def test_positions_of_native_histograms_are_recorded() -> None:
    found = parse_series("h 1 {{schema:1 sum:3 buckets:[5 10]}}x2 {{count:1}}+{{count:2}}x1 2")
    assert found == SeriesLine({"__name__": "h"}, (1, None, None, None, None, None, 2), (1, 2, 3, 4, 5))


def test_a_script_is_a_list_of_commands() -> None:
    load, clear, *evaluations = parse_script(
        "# nothing\nload 30s\n  a 1 2\n  # ends the command\n\nclear\neval instant at 1m30s a\n  a 1\n"
        "\neval range from 0 to 1m step 20s a\n"
    )
    assert load == Load(30_000, (SeriesLine({"__name__": "a"}, (1, 2)),))
    assert clear == Clear()
    instant, ranged = evaluations
    assert isinstance(instant, Evaluation)
    assert isinstance(ranged, Evaluation)
    assert (instant.line, instant.query, instant.times) == (7, "a", QueryTimes.instant(90_000))
    assert (ranged.line, ranged.query, ranged.times) == (10, "a", QueryTimes(0, 60_000, 20_000))
    assert list(ranged.points or ()) == [0, 20_000, 40_000, 60_000]


def test_of_two_lines_for_a_series_in_a_load_the_last_is_used() -> None:
    [load] = parse_script('load 1m\n a{x="1",y="2"} 1\n a{y="2",x="1"} 2')
    assert isinstance(load, Load)
    assert [line.values for line in load.series] == [(2,)]


def test_unsupported_samples_are_recorded_with_their_series() -> None:
    [load] = parse_script('load_with_nhcb 1m\n s_bucket{le="1", a="b"} 1 2\n h 1 _ {{count:1}}\n c@st -1m\n c 1')
    assert isinstance(load, Load)
    assert load.unsupported == (
        Unsupported({"__name__": "s", "a": "b"}, (0, 60_000), "native histograms"),
        Unsupported({"__name__": "h"}, (120_000,), "native histograms"),
        Unsupported({"__name__": "c"}, (0,), "start timestamps"),
    )


def test_expectations_are_read() -> None:
    found = evaluation(
        "eval instant at 0 a\n expect ordered\n expect warn msg: one (1:2)\n expect warn regex: t.o\n"
        " expect no_info\n b 2"
    ).expected
    assert found.is_ordered
    assert [str(warning) for warning in found.warnings.texts] == ["'one (1:2)'", "a match of 't.o'"]
    assert found.infos == ExpectedAnnotations(none=True)
    assert found.series == (SeriesLine({"__name__": "b"}, (2,)),)
    assert evaluation("eval instant at 0 1\n -0x10").expected.scalar == -16
    assert evaluation("eval instant at 0 'a'\n expect string `b\"`").expected.string == 'b"'
    failure = evaluation("eval_fail instant at 0 a\n expected_fail_message exactly this").expected.failure
    assert failure is not None
    assert (failure.matches("exactly this"), failure.matches("exactly this one")) == (True, False)


@pytest.mark.parametrize(
    ("script", "line", "fault"),
    [
        ("\nlaod 1m", 2, "is not a command: write load, clear or eval"),
        ("load", 1, "write: load STEP"),
        ("load 5x\n a 1", 1, "unknown unit"),
        ("load 1m\n\nload 1m\n a 1\n b 1y", 5, "'1y' is not a value"),
        ("load 1m\n a 1+2", 2, "has a step but no count"),
        ("load 1m\n a 1x99999999999999999999", 2, "more than 1,000,000 values"),
        ('load 1m\n a{b=~"c"} 1', 2, "the label b of a series needs =, not =~"),
        ('load 1m\n a{b="c" 1', 2, "unexpected"),
        ('load 1m\n a{__name__="c"} 1', 2, "duplicate label __name__"),
        ("load 1m\n 5", 2, "does not start with a series"),
        ("load 1m\n a}5", 2, "unexpected '}5' after the labels"),
        ("eval instant a", 1, "write: eval instant at TIME QUERY"),
        ("eval instant at 5 a", 1, "not a valid duration"),
        ("eval range from 2m to 1m step 1m a", 1, "the end \\(1m\\) is before the start \\(2m\\)"),
        ("eval range from 0 to 1m step 0s a", 1, "the step must be positive"),
        ("eval instant at 0 a\n a 1 2", 1, "has one value"),
        ("eval instant at 0 a\n expect warnings", 2, "write: expect fail"),
        ("eval instant at 0 a\n expect warn regex: (", 2, "not a regular expression"),
        ("eval instant at 0 a\n expect string abc", 2, "takes a string in quotes"),
        ("eval instant at 0 a\n expect fail\n expect fail", 1, "may have only one expect fail"),
        ("eval instant at 0 a\n expect info\n expect no_info", 1, "mutually exclusive"),
        ("eval range from 0 to 0 step 1m a\n expect range vector from 0 to 1m step 1m", 2, "belongs to eval instant"),
    ],
)
def test_errors_have_a_line_number(script: str, line: int, fault: str) -> None:
    with pytest.raises(ScriptError, match=fault) as caught:
        parse_script(script)
    assert caught.value.line == line
