"""The parser: trees, and error messages with their positions."""

import math

import pytest

from strandline.index.matchers import Matcher, MatchOp
from strandline.promql.errors import ParseError
from strandline.promql.expressions import (
    Aggregation,
    Aggregator,
    AtBound,
    Binary,
    Call,
    Cardinality,
    DurationNumber,
    Expression,
    Matching,
    MatrixSelector,
    Negation,
    NumberLiteral,
    Operator,
    Span,
    StringLiteral,
    Subquery,
    VectorSelector,
    type_of,
)
from strandline.promql.parser import MAX_LENGTH, parse
from strandline.promql.printing import format_query, print_expression
from strandline.promql.token_stream import MAX_HEIGHT, MAX_NESTING
from strandline.promql.tree_json import tree_of
from strandline.promql.value_types import ValueType

pytestmark = pytest.mark.unit


def name_of(metric: str) -> Matcher:
    return Matcher("__name__", MatchOp.EQUAL, metric)


# Each with all its parentheses; the added ones show the precedence.
@pytest.mark.parametrize(
    ("query", "grouped"),
    [
        ("a + b * c", "a + (b * c)"),
        ("a * b + c", "(a * b) + c"),
        ("a - b - c", "(a - b) - c"),
        ("a / b % c atan2 d", "((a / b) % c) atan2 d"),
        ("a ^ b ^ c", "a ^ (b ^ c)"),
        ("a * b ^ c * d", "(a * (b ^ c)) * d"),
        ("-a ^ b", "-(a ^ b)"),
        ("-a * b", "(-a) * b"),
        ("a ^ -b * c", "(a ^ (-b)) * c"),
        ("a ^ -b ^ c", "a ^ (-(b ^ c))"),
        ("a > b + c", "a > (b + c)"),
        ("a > b == c", "(a > b) == c"),
        ("a and b > c", "a and (b > c)"),
        ("a or b and c", "a or (b and c)"),
        ("a and b unless c", "(a and b) unless c"),
        ("a or b or c", "(a or b) or c"),
        ("-a offset 1m", "-(a offset 1m)"),
        ("a + b offset 5m * c", "a + ((b offset 5m) * c)"),
        ("a offset -5m ^ b", "(a offset -5m) ^ b"),
        ("a @ 5 - b", "(a @ 5) - b"),
    ],
)
def test_operators_bind_as_in_prometheus(query, grouped):
    def shape(node):
        match node:
            case Binary(operator=operator, left=left, right=right):
                return (operator, shape(left), shape(right))
            case Negation(inner=inner):
                return ("sign", shape(inner))
            case VectorSelector() | NumberLiteral() | Subquery():
                return print_expression(node)
        return shape(node.inner)

    assert shape(parse(query)) == shape(parse(grouped))


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("1", 1.0),
        ("+.5", 0.5),
        ("5.", 5.0),
        ("-1e-3", -0.001),
        ("1_000.5", 1000.5),
        ("0x1F", 31.0),
        ("0X_ff", 255.0),
        ("010", 8.0),
        ("08", 8.0),
        ("0_17", 15.0),
        ("Inf", float("inf")),
        ("-iNF", float("-inf")),
        ("1h30m", 5400.0),
        ("2w", 1209600.0),
        ("-250ms", -0.25),
        ("1y2w3d4h5m6s7ms", 31536000 + 1209600 + 259200 + 14400 + 300 + 6 + 0.007),
        ("12345678901234567890", 12345678901234567890.0),
        ("0777777777777777777777777", 777777777777777777777777.0),
        ("- -2", 2.0),
    ],
)
def test_numbers_and_durations_are_scalars(query, value):
    literal = parse(query)
    assert isinstance(literal, NumberLiteral)
    assert literal.value == value


def test_nan_and_negative_zero_are_numbers():
    nan, zero = parse("NaN"), parse("-0")
    assert isinstance(nan, NumberLiteral)
    assert math.isnan(nan.value)
    assert isinstance(zero, NumberLiteral)
    assert str(zero.value) == "-0.0"


@pytest.mark.parametrize(
    ("query", "text"),
    [
        (r'"a\tb\"c\\"', 'a\tb"c\\'),
        (r"'it\'s \"x\"'".replace(r"\"", '"'), 'it\'s "x"'),
        (r"`raw \n 'x' " + "\n`", "raw \\n 'x' \n"),
        (r'"\x41\101\u00e9\U0001F600"', "AAé😀"),
        (r'"\xc3\xa9"', "é"),
        (r'"\xff"', "\udcff"),
        ('"ünï # no comment"', "ünï # no comment"),
    ],
)
def test_strings_have_gos_escapes(query, text):
    literal = parse(query)
    assert isinstance(literal, StringLiteral)
    assert literal.value == text


@pytest.mark.parametrize(
    ("query", "name", "matchers"),
    [
        ("up", "up", [name_of("up")]),
        ("a:b:c", "a:b:c", [name_of("a:b:c")]),
        ("sum", "sum", [name_of("sum")]),
        ("step{}", "step", [name_of("step")]),
        ("Offset", "Offset", [name_of("Offset")]),
        ("fill", "fill", [name_of("fill")]),
        ('up{job!="x",}', "up", [Matcher("job", MatchOp.NOT_EQUAL, "x"), name_of("up")]),
        ('{by="x",on=~"y"}', "", [Matcher("by", MatchOp.EQUAL, "x"), Matcher("on", MatchOp.MATCH, "y")]),
        ('{"my.metric"}', "", [name_of("my.metric")]),
        (
            "{'a b'!~`c+`, \"m\"}",
            "",
            [Matcher("a b", MatchOp.NOT_MATCH, "c+"), name_of("m")],
        ),
        ('{"m", "n"}', "", [name_of("m"), name_of("n")]),
        ('{__name__="x"} # comment', "", [name_of("x")]),
        ('up{job="\\xff"}', "up", [Matcher("job", MatchOp.EQUAL, "\ufffd"), name_of("up")]),
    ],
)
def test_selectors(query, name, matchers):
    selector = parse(query)
    assert isinstance(selector, VectorSelector)
    assert (selector.name, list(selector.matchers)) == (name, matchers)


def test_modifiers_belong_to_the_selector_and_its_span_grows_with_them():
    selector = parse("up offset -1h @ 12.3456")
    assert isinstance(selector, VectorSelector)
    assert (selector.at, selector.span) == (12346, Span(0, 23))
    assert selector.offset == DurationNumber(-3600.0, Span(10, 13))
    matrix = parse("up[5m] @ end() offset 90")
    assert isinstance(matrix, MatrixSelector)
    assert (matrix.selector.at, matrix.selector.span, matrix.span) == (AtBound.END, Span(0, 2), Span(0, 24))
    assert matrix.selector.offset == DurationNumber(90.0, Span(22, 24), is_duration=False)
    subquery = parse("(up)[1h:] @ start()")
    assert isinstance(subquery, Subquery)
    assert (subquery.at, subquery.step, subquery.range) == (AtBound.START, None, DurationNumber(3600.0, Span(5, 7)))


@pytest.mark.parametrize("moment", ["9223372036854775808e-1", "9e18", "-9.2e18"])
def test_timestamps_beyond_64_bits_of_milliseconds_are_clamped(moment):
    selector = parse(f"up @ {moment}")
    assert isinstance(selector, VectorSelector)
    assert isinstance(selector.at, int)
    assert abs(selector.at) == (1 << 63) - 1


@pytest.mark.parametrize("query", ["sum by (a, 'b c',) (x)", 'SUM(x) BY (a, "b c")', "sum by(a,`b c`)(x)"])
def test_groupings_may_be_before_or_after_the_arguments(query):
    aggregation = parse(query)
    assert isinstance(aggregation, Aggregation)
    assert (aggregation.aggregator, aggregation.labels, aggregation.is_without) == (Aggregator.SUM, ("a", "b c"), False)
    assert aggregation.parameter is None
    assert aggregation.span == Span(0, len(query))


def test_parameters_of_aggregations_come_first():
    aggregation = parse("quantile without (on, offset, bool) (0.9, x)")
    assert isinstance(aggregation, Aggregation)
    assert aggregation.is_without
    assert aggregation.labels == ("on", "offset", "bool")
    assert aggregation.parameter == NumberLiteral(0.9, Span(37, 40))


@pytest.mark.parametrize(
    ("query", "matching"),
    [
        ("a + b", Matching()),
        ("a + on () b", Matching(is_on=True)),
        ("a > bool ignoring (x) b", Matching(labels=("x",))),
        ("a * on (x) group_left b", Matching(Cardinality.MANY_TO_ONE, ("x",), is_on=True)),
        ("a * on (x) group_left (y, z) b", Matching(Cardinality.MANY_TO_ONE, ("x",), is_on=True, include=("y", "z"))),
        ("a * ignoring (x) group_right (x) b", Matching(Cardinality.ONE_TO_MANY, ("x",), include=("x",))),
        ("a unless on (x) b", Matching(Cardinality.MANY_TO_MANY, ("x",), is_on=True)),
        ("a or b", Matching(Cardinality.MANY_TO_MANY)),
        ("a + 1", None),
        ("1 + on () a", None),
        ("1 ^ 2", None),
        ("a </ 1", None),
    ],
)
def test_operators_between_vectors_have_a_matching(query, matching):
    binary = parse(query)
    assert isinstance(binary, Binary)
    assert binary.matching == matching


def test_calls_have_their_function_and_the_position_of_the_complete_call():
    call = parse(" round( up , 0.5 ) ")
    assert isinstance(call, Call)
    assert (call.function.name, len(call.arguments), call.span) == ("round", 2, Span(1, 18))


@pytest.mark.parametrize(
    ("query", "given"),
    [
        ("1 + 2", ValueType.SCALAR),
        ("1 + up", ValueType.VECTOR),
        ("-(up)", ValueType.VECTOR),
        ("time() > bool 5", ValueType.SCALAR),
        ("up[5m]", ValueType.MATRIX),
        ("up[5m:1m]", ValueType.MATRIX),
        ("'x'", ValueType.STRING),
        ("scalar(up)", ValueType.SCALAR),
        ("sum(up)", ValueType.VECTOR),
    ],
)
def test_types_of_expressions(query, given):
    assert type_of(parse(query)) is given


def test_positions_count_characters_and_errors_lines_and_columns():
    binary = parse("# first\n  {'ü'} +\n\tup{}")
    assert isinstance(binary, Binary)
    assert (binary.operator, binary.left.span, binary.right.span) == (Operator.ADD, Span(10, 15), Span(19, 23))
    with pytest.raises(ParseError) as raised:
        parse("# first\n  {'ü'} +\n\tup}")
    error = raised.value
    assert (error.line, error.column, error.span.start) == (3, 4, 21)
    assert error.fault == "unexpected character: '}'"
    assert str(error) == "3:4: parse error: unexpected character: '}'"


def test_an_empty_query_has_no_position():
    with pytest.raises(ParseError, match=r"^unknown position: parse error: no expression found in input$"):
        parse("")


def nested(opening: str, closing: str, times: int) -> str:
    return opening * times + "up" + closing * times


NESTINGS = [
    ("(", ")"),
    ("-", ""),
    ("abs(", ")"),
    ("label_replace(", ", 'a', 'b', 'c', 'd')"),
    ("sum by (x) (", ")"),
    ("1 + (", ")"),
    ("2 ^ ", ""),
    ("max_over_time((", ")[5m:])"),
]


@pytest.mark.parametrize(("opening", "closing"), NESTINGS)
def test_deep_nesting_is_refused_and_never_a_crash(opening, closing):
    with pytest.raises(ParseError, match=f"nested more than {MAX_NESTING} levels deep"):
        parse(nested(opening, closing, MAX_LENGTH // len(opening + closing) - 2))


@pytest.mark.parametrize(("opening", "closing"), NESTINGS)
def test_the_deepest_accepted_tree_can_be_processed(opening, closing):
    def accepted(levels: int) -> Expression | None:
        try:
            return parse(nested(opening, closing, levels))
        except ParseError:
            return None

    deepest = next(tree for levels in range(MAX_NESTING, 0, -1) if (tree := accepted(levels)) is not None)
    printed = print_expression(deepest)
    assert printed.count("up") == 1
    assert print_expression(parse(printed)) == printed
    assert print_expression(parse(format_query(deepest))) == printed
    assert tree_of(deepest) == tree_of(parse(printed))


def test_fifty_thousand_parentheses_are_refused():
    with pytest.raises(ParseError, match="nested more than 100 levels deep"):
        parse("(" * 50_000)


@pytest.mark.parametrize("separator", [" + ", " or ", " > ", " / ignoring (a) "])
def test_chains_of_operators_count_as_levels(separator):
    assert type_of(parse(separator.join(["up"] * MAX_HEIGHT))) is ValueType.VECTOR
    with pytest.raises(ParseError, match=f"more than {MAX_HEIGHT} levels"):
        parse(separator.join(["up"] * (MAX_HEIGHT + 1)))


@pytest.mark.parametrize("duration", [("(", "5m", ")"), ("-", "step()", ""), ("1m + (", "5m", ")"), ("2 ^ ", "2", "")])
def test_nested_durations_are_limited(duration):
    opening, inner, closing = duration
    with pytest.raises(ParseError, match="levels"):
        parse(f"up[{opening * 3000}{inner}{closing * 3000}]")
    with pytest.raises(ParseError, match="levels"):
        parse(f"up offset {opening * 3000}{inner}{closing * 3000}")


def test_chains_of_durations_are_limited():
    with pytest.raises(ParseError, match="levels"):
        parse(f"up[{'+'.join(['1m'] * 1000)}]")


def test_long_queries_are_refused():
    assert parse("up" + " " * (MAX_LENGTH - 2))
    with pytest.raises(ParseError, match="65537 characters, and at most 65536"):
        parse("up" + " " * (MAX_LENGTH - 1))
