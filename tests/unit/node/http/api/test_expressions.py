"""What of PromQL is answered."""

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.matchers import Matcher, MatchOp
from strandline.node.http.api.expressions import Constant, Selection, parse_expression
from strandline.node.http.errors import BadParameter
from strandline.node.http.parameters import MAX_SELECTOR_LENGTH

pytestmark = pytest.mark.unit

UP = (Matcher("__name__", MatchOp.EQUAL, "up"),)
MINUTE = 60_000


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("up", Selection(UP)),
        (" up ", Selection(UP)),
        ("(up)", Selection(UP)),
        (" ( (up[5m]) ) ", Selection(UP, 5 * MINUTE)),
        ("up{}", Selection(UP)),
        ('{__name__="up"}', Selection(UP)),
        ('{"up"}', Selection(UP)),
        ("up[5m]", Selection(UP, 5 * MINUTE)),
        ("up [ 1h30m ] ", Selection(UP, 90 * MINUTE)),
        ("up[300]", Selection(UP, 5 * MINUTE)),
        ("up offset 5m", Selection(UP, offset=5 * MINUTE)),
        # Prometheus 3 takes seconds without a unit.
        ("up offset 5", Selection(UP, offset=5000)),
        ("up OFFSET -5m", Selection(UP, offset=-5 * MINUTE)),
        ("up offset - 1m", Selection(UP, offset=-MINUTE)),
        ("up{}offset 5m", Selection(UP, offset=5 * MINUTE)),
        ("up @ 1.5", Selection(UP, at=1500)),
        ("up@-2", Selection(UP, at=-2000)),
        ("up @ 1e3", Selection(UP, at=1_000_000)),
        ("up @ start()", Selection(UP, at="start")),
        ("up @ END ( )", Selection(UP, at="end")),
        ("up[5m] offset 1m @ 7", Selection(UP, 5 * MINUTE, MINUTE, 7000)),
        ("up[5m] @ 7 offset 1m", Selection(UP, 5 * MINUTE, MINUTE, 7000)),
        ("up # a comment } [\n [5m] # more", Selection(UP, 5 * MINUTE)),
    ],
)
def test_selectors_are_read_with_what_stands_behind_them(written: str, expected: Selection) -> None:
    assert parse_expression(written) == expected


@pytest.mark.parametrize("value", ["}", "[5m]", "offset 5m", "@", '\\"}', "# none", "'", "`", "\\\\"])
@pytest.mark.parametrize("modifier", ["", "[1m]", " offset 1m"])
def test_what_stands_in_a_string_is_no_modifier(value: str, modifier: str) -> None:
    found = parse_expression(f'up{{a="{value}"}}{modifier}')
    assert isinstance(found, Selection)
    assert found.selector[1].value == value.replace('\\"', '"').replace("\\\\", "\\")
    assert (found.span is not None) == (modifier == "[1m]")
    assert (found.offset != 0) == ("offset" in modifier)


@pytest.mark.parametrize(
    "written",
    ["sum(up)", "rate(up[5m])", "up + up", "up > 0", "up and up", "-up", "(up", "up)", "(up)[5m]", "(up) or (up)",
     "up[5m:1m]", "up[5m][5m]", "up offset",
     "up offset 1m offset 1m", "up @ 1 @ 2", "up @ now()", "up[0s]", "up[5]m", "up[-5m]", "up{", 'up{a="b',
     "up{a=b}", '"text"', "up up", "{}", '{a=~".*"}', "up[]", "1 + up", "1 +", "((1)", "vector(1)", "time()", "1 == 1",
     "up offset 5x", "🙂", "\x00", 'up{a=~"("}'],
)  # fmt: skip
def test_everything_else_is_refused_with_where_to_have_it(written: str) -> None:
    with pytest.raises(BadParameter) as refused:
        parse_expression(written)
    assert (refused.value.status, refused.value.kind) == (400, "bad_data")
    assert 'the parameter "query" is not a plain selector' in refused.value.message
    assert "remote_read" in refused.value.remedy


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("1+1", 2.0),
        (" 1 + 1 ", 2.0),
        ("1", 1.0),
        ("-1.5e3", -1500.0),
        (".5", 0.5),
        ("0x1F", 31.0),
        ("Inf", math.inf),
        ("-inf", -math.inf),
        ("2*3+4", 10.0),
        ("2+3*4", 14.0),
        ("(2+3)*4", 20.0),
        ("10-4-3", 3.0),
        ("8/4/2", 1.0),
        ("2^3^2", 512.0),
        ("-2^2", -4.0),
        ("2^-1", 0.5),
        ("7%4", 3.0),
        ("-7%4", -3.0),
        ("1/0", math.inf),
        ("--1", 1.0),
        ("1e400", math.inf),
    ],
)
def test_constants_are_worked_out(written: str, expected: float) -> None:
    assert parse_expression(written) == Constant(expected)


@pytest.mark.parametrize("written", ["NaN", "0/0", "0%0", "Inf-Inf"])
def test_what_is_no_number_is_nan(written: str) -> None:
    found = parse_expression(written)
    assert isinstance(found, Constant)
    assert math.isnan(found.value)


@pytest.mark.parametrize(
    "written",
    ["(" * 60_000, "(" * 100 + "1" + ")" * 100, "-" * 60_000 + "1", "-" * 150 + "1", "up{" + "a" * 60_000,
     'up{a="' + "\\" * 60_000, "#" * 60_000, "up" + "[" * 60_000, "up" + " offset 1m" * 5000, "1+" * 30_000 + "1",
     "up" + " " * 60_000 + "x", "{" * 60_000, '{a="b"' + ',a="b"' * 9000, "9" * 60_000],
)  # fmt: skip
def test_hostile_text_is_refused_quickly_and_shortly(written: str) -> None:
    with pytest.raises(BadParameter) as refused:
        parse_expression(written)
    assert len(str(refused.value)) < 2000


def test_a_very_long_expression_is_refused() -> None:
    with pytest.raises(BadParameter, match=f"at most {MAX_SELECTOR_LENGTH} are taken"):
        parse_expression("a" * (MAX_SELECTOR_LENGTH + 1))


@given(st.text(st.sampled_from("up{}[]()\"'`=~!@ offsetend5m.-+*/#\n\\,é"), max_size=20))
def test_any_text_is_read_or_refused(written: str) -> None:
    with suppress(BadParameter):
        assert isinstance(parse_expression(written), Constant | Selection)
