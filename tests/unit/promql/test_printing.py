"""Formatting of trees: on one line, and broken into lines."""

import dataclasses
from enum import Enum

import pytest

from strandline.index.matchers import Matcher
from strandline.promql.expressions import DurationNumber, Negation
from strandline.promql.parser import parse
from strandline.promql.printing import LINE_LENGTH, format_query, print_expression
from support.promql_expressions import expressions

pytestmark = pytest.mark.unit


def shape(value):
    """A tree without positions, with sorted matchers, and with durations as their lengths. A plus is omitted, because
    infinity is printed with one.
    """
    if isinstance(value, DurationNumber):
        return value.seconds
    if isinstance(value, Negation) and value.is_plus:
        return shape(value.inner)
    if isinstance(value, Enum) or not dataclasses.is_dataclass(value):
        if not isinstance(value, tuple):
            return str(value) if isinstance(value, float) else value
        inner = [shape(part) for part in value]
        return sorted(inner) if value and isinstance(value[0], Matcher) else inner
    fields = [field.name for field in dataclasses.fields(value) if field.name != "span"]
    return [type(value).__name__, *[shape(getattr(value, name)) for name in fields]]


def test_what_is_printed_parses_to_the_same_tree():
    for query in expressions(seed=20261118, count=800):
        tree = parse(query)
        for printed in (print_expression(tree), format_query(tree)):
            assert shape(parse(printed)) == shape(tree), query


@pytest.mark.parametrize(
    ("query", "printed"),
    [
        ("1.50", "1.5"),
        ("1e21", "1000000000000000000000"),
        ("-1e-7", "-0.0000001"),
        ("inf", "+Inf"),
        ("-INF", "-Inf"),
        ("nan", "NaN"),
        ("-0", "-0"),
        ("90m", "1h30m"),
        ("105d1s", "105d1s"),
        ("104w", "104w"),
        ("730d", "2y"),
        ("-1s500ms", "-1s500ms"),
        (r"'it\'s\x00\u200b\"'".replace(r"\"", '"'), r'"it' + "'" + r's\x00\u200b\""'),
        (r'"\xff\ufffd"', r'"\xff\ufffd"'),
        ("`a\\b\n`", r'"a\\b\n"'),
        ("up{ }", "up"),
        ("""up{z='1',a!~"b",  'x.y'=`c`}""", 'up{"x.y"="c",a!~"b",z="1"}'),
        ("{'my.metric',a='b'}", '{__name__="my.metric",a="b"}'),
        ("up   [300]offset 60 @5", "up[5m] @ 5.000 offset 1m"),
        ("up offset -90", "up offset -1m30s"),
        ("up offset 0s", "up"),
        ("up @ start() offset 5m", "up @ start() offset 5m"),
        ("up[5m:]", "up[5m:]"),
        ("up[ (5)+1m*2 : STEP() ]", "up[(5) + 1m * 2:step()]"),
        ("up[((5m))]", "up[(5m)]"),
        ("up offset -min_of(1m,range())", "up offset -min_of(1m, range())"),
        ("SUM(up)BY(a,'b.c')", 'sum by (a, "b.c") (up)'),
        ("sum by () (up)", "sum(up)"),
        ("sum without () (up)", "sum without () (up)"),
        ("sum by ('without') (up)", 'sum by ("without") (up)'),
        ("topk(5,up)", "topk(5, up)"),
        ("a AND on()b", "a and on () b"),
        ("a==bool ignoring(x)b", "a == bool ignoring (x) b"),
        ("a*on(x)group_left b", "a * on (x) group_left () b"),
        ("a*ignoring()group_right(y)b", "a * ignoring () group_right (y) b"),
        ("1 + on() a", "1 + a"),
        ("+a - -b", "+a - -b"),
        ("time( )", "time()"),
    ],
)
def test_one_line(query, printed):
    assert print_expression(parse(query)) == printed
    assert format_query(parse(query)) == printed


LONG = "a_metric_with_a_long_name_of_its_own"


def test_lines_are_broken_where_they_are_too_long():
    long = f'{LONG}{{job="a_job_with_a_long_name_too"}}'
    query = f"sum by (job) (rate({long}[5m])) / on (job) group_left (x) topk(3, -({long} + {LONG}) > bool 1)"
    assert format_query(parse(query)).splitlines() == [
        f"  sum by (job) (rate({long}[5m]))",
        "/ on (job) group_left (x)",
        "  topk(",
        "    3,",
        "      -(",
        f"          {long}",
        "        +",
        f"          {LONG}",
        "      )",
        "    > bool",
        "      1",
        "  )",
    ]


def test_a_line_has_at_most_a_hundred_bytes():
    fits = "x" * (LINE_LENGTH - len("abs(y + )"))
    assert "\n" not in format_query(parse(f"abs(y + {fits})"))
    assert format_query(parse(f"abs(y + {fits}x)")).splitlines() == ["abs(", f"  y + {fits}x", ")"]
    # Two bytes each.
    assert "\n" in format_query(parse(f"abs({{'{'ü' * 50}'}})"))


def test_subqueries_have_their_brackets_after_the_last_line():
    query = f"max_over_time(sum without (a) ({LONG} + {LONG} + {LONG})[1h:5m] offset 1d)"
    assert format_query(parse(query)).splitlines() == [
        "max_over_time(",
        "  sum without (a) (",
        f"      {LONG} + {LONG}",
        "    +",
        f"      {LONG}",
        "  )[1h:5m] offset 1d",
        ")",
    ]
