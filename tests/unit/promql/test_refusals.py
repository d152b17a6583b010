"""Rejected queries, with the error messages and positions of Prometheus 3.15."""

import pytest

from strandline.errors import ExitCode
from strandline.promql.errors import ParseError
from strandline.promql.functions import FUNCTIONS
from strandline.promql.parser import parse

pytestmark = pytest.mark.unit


def refusal(query: str) -> str:
    with pytest.raises(ParseError) as raised:
        parse(query)
    assert raised.value.exit_code is ExitCode.USAGE
    assert raised.value.span.start <= raised.value.span.end <= len(query)
    return str(raised.value)


SYNTAX = [
    ("# nothing", "1:1: parse error: no expression found in input"),
    ("up up", '1:4: parse error: unexpected identifier "up"'),
    ("a:b a:b", '1:5: parse error: unexpected metric identifier "a:b"'),
    ("up 5m", '1:4: parse error: unexpected duration "5m"'),
    ("up 'a longer string'", '1:4: parse error: unexpected string "\'a longer "...'),
    ("+", "1:2: parse error: unexpected end of input"),
    ("a + * b", "1:5: parse error: unexpected <op:*>"),
    ("a , b", '1:3: parse error: unexpected ","'),
    ("bool", "1:1: parse error: unexpected <bool>"),
    ("a + on", '1:7: parse error: unexpected end of input in grouping opts, expected "("'),
    ("a + on (1) b", '1:9: parse error: unexpected number "1" in grouping opts, expected label'),
    ("a + on (x y) b", '1:11: parse error: unexpected identifier "y" in grouping opts, expected "," or ")"'),
    ("a + group_left b", "1:5: parse error: unexpected <group_left>"),
    ("a + on (x) group_left > b", '1:23: parse error: unexpected <op:>> in grouping opts, expected "("'),
    ("sum by ('') (a)", '1:9: parse error: invalid label name for grouping: ""'),
    ("sum by (without) (a)", "1:9: parse error: unexpected <without> in grouping opts, expected label"),
    ("sum(a b)", '1:7: parse error: unexpected identifier "b" in aggregation'),
    ("sum((a b))", '1:8: parse error: unexpected identifier "b" in aggregation'),
    ("sum by (x) a", '1:12: parse error: unexpected identifier "a" in aggregation'),
    ("sum(a) by (x) by (y)", "1:15: parse error: unexpected <by>"),
    ("sum()", "1:1: parse error: no arguments for aggregate expression provided"),
    ("sum(a, b)", "1:1: parse error: wrong number of arguments for aggregate expression provided, expected 1, got 2"),
    ("topk(a)", "1:1: parse error: wrong number of arguments for aggregate expression provided, expected 2, got 1"),
    ("abs(a,)", "1:6: parse error: trailing commas not allowed in function call args"),
    ("abs(,a)", '1:5: parse error: unexpected ","'),
    ("(a", "1:3: parse error: unclosed left parenthesis"),
    ("a)", "1:3: parse error: unexpected right parenthesis ')'"),
    ("()", '1:2: parse error: unexpected ")"'),
    ("a ! b", "1:3: parse error: unexpected character after '!': ' '"),
    ("a =~ b", "1:3: parse error: unexpected character after '=': '~'"),
    ("a = b", '1:3: parse error: unexpected "="'),
    ("a; b", "1:2: parse error: unexpected character: ';'"),
    ("ä", "1:1: parse error: unexpected character: 'ä'"),
    ("a }", "1:3: parse error: unexpected character: '}'"),
    ("nosuch(a)", '1:1: parse error: unknown function with name "nosuch"'),
    ("RATE(a[5m])", '1:1: parse error: unknown function with name "RATE"'),
    ("START()", '1:1: parse error: unknown function with name "START"'),
]
BRACES = [
    ("{", "1:2: parse error: unexpected end of input inside braces"),
    ("{a", "1:3: parse error: unexpected end of input inside braces"),
    ("{a}", '1:3: parse error: unexpected "}" in label matching, expected label matching operator'),
    ("{a=b}", '1:4: parse error: unexpected identifier "b" in label matching, expected string'),
    ("{a='b' c='d'}", '1:8: parse error: unexpected identifier "c" in label matching, expected "," or "}"'),
    ("{,}", '1:2: parse error: unexpected "," in label matching, expected identifier or "}"'),
    ("{a='b',,}", '1:8: parse error: unexpected "," in label matching, expected identifier or "}"'),
    ("{a!'b'}", "1:3: parse error: unexpected character after '!' inside braces: '\\''"),
    ("{{}", "1:2: parse error: unexpected left brace '{'"),
    ("{1='a'}", "1:2: parse error: unexpected character inside braces: '1'"),
    ("{}", "1:1: parse error: vector selector must contain at least one non-empty matcher"),
    ("{a='',b=~'.*',c!~'x+'}", "1:1: parse error: vector selector must contain at least one non-empty matcher"),
    ("{''}", "1:1: parse error: vector selector must contain at least one non-empty matcher"),
    ("up{__name__='x'}", '1:1: parse error: metric name must not be set twice: "up" or "x"'),
    ("up{'x'}", '1:1: parse error: metric name must not be set twice: "up" or "x"'),
]
STRINGS = [
    ('"a', "1:1: parse error: unterminated quoted string"),
    ("'a\nb'", "1:1: parse error: unterminated quoted string"),
    ("`a", "1:1: parse error: unterminated raw string"),
    (r'"\q"', "1:1: parse error: unknown escape sequence U+0071 'q'"),
    (r"""'\"'""", "1:1: parse error: unknown escape sequence U+0022 '\"'"),
    (r'"\x4"', "1:1: parse error: illegal character U+0022 '\"' in escape sequence"),
    (r'"\u12', "1:1: parse error: escape sequence not terminated"),
    (r'"\ud800"', "1:1: parse error: escape sequence is an invalid Unicode code point"),
    (r'"\400"', "1:1: parse error: escape sequence is an invalid Unicode code point"),
    ('"\ufffd"', "1:1: parse error: invalid UTF-8 rune"),
]
NUMBERS = [
    ("1e", '1:1: parse error: bad number or duration syntax: "1e"'),
    ("1..2", '1:1: parse error: bad number or duration syntax: "1.."'),
    ("1a", '1:1: parse error: bad number or duration syntax: "1"'),
    ("5m3", '1:1: parse error: bad number or duration syntax: "5m3"'),
    ("0x", '1:1: parse error: error parsing number: strconv.ParseFloat: parsing "0x": invalid syntax'),
    ("1e999", '1:1: parse error: error parsing number: strconv.ParseFloat: parsing "1e999": value out of range'),
    ("1.5h", '1:1: parse error: unknown unit "." in duration "1.5h"'),
    ("1m1h", '1:1: parse error: not a valid duration string: "1m1h"'),
    ("5hs", '1:1: parse error: unknown unit "hs" in duration "5hs"'),
    ("300y", "1:1: parse error: duration out of range"),
]
MODIFIERS = [
    ("up[", "1:4: parse error: unexpected end of input in duration expression"),
    ("up[5m", "1:6: parse error: unclosed left bracket"),
    (
        "up[]",
        '1:4: parse error: unexpected "]" in subquery or range selector, expected number, duration, step(), or range()',
    ),
    ("up[5m 6m]", '1:7: parse error: unexpected duration "6m" in subquery or range, expected ":" or "]"'),
    ("up[5m:1m 2m]", '1:10: parse error: unexpected duration "2m" in subquery selector, expected "]"'),
    (
        "up[5m:+]",
        '1:8: parse error: unexpected "]" in subquery selector, expected number, duration, step(), range(), or "]"',
    ),
    ("up[:5m]", "1:5: parse error: unexpected colon before duration in duration expression"),
    ("up[5m:1m:1m]", "1:9: parse error: unexpected colon ':'"),
    ("up[5x]", '1:4: parse error: bad number or duration syntax: "5"'),
    ("up[x]", "1:4: parse error: unexpected character in duration expression: 'x'"),
    ("up[5m+x]", "1:7: parse error: unexpected character: 'x', expected ':'"),
    ("up[[5m]]", "1:4: parse error: unexpected character in duration expression: '['"),
    ("up]", "1:3: parse error: unexpected right bracket ']'"),
    ("up[0]", "1:4: parse error: duration must be greater than 0"),
    ("up[5m:-1m]", "1:7: parse error: duration must be greater than 0"),
    ("up[5m/0]", "1:6: parse error: division by zero"),
    ("up[5m % 0s]", "1:7: parse error: modulo by zero"),
    ("up[1e10]", "1:4: parse error: duration out of range"),
    ("sum(up)[5m]", "1:8: parse error: ranges only allowed for vector selectors"),
    ("up offset 5m[5m]", "1:13: parse error: no offset modifiers allowed before range"),
    ("up @ 1 [5m]", "1:8: parse error: no @ modifiers allowed before range"),
    (
        "up offset",
        "1:10: parse error: unexpected end of input in offset, expected number, duration, step(), or range()",
    ),
    ("up offset 1m offset 2m", "1:1: parse error: offset may not be set multiple times"),
    (
        "sum(up) offset 5m",
        (
            "1:1: parse error: offset modifier must be preceded by an instant vector selector"
            " or range vector selector or a subquery"
        ),
    ),
    (
        "1 @ 5",
        (
            "1:1: parse error: @ modifier must be preceded by an instant vector selector"
            " or range vector selector or a subquery"
        ),
    ),
    ("up @ 1 @ 2", "1:1: parse error: @ <timestamp> may not be set multiple times"),
    ("up @ x", '1:6: parse error: unexpected identifier "x" in @, expected timestamp'),
    ("up @ start", "1:11: parse error: unexpected end of input in @, expected timestamp"),
    ("up @ Inf", "1:1: parse error: timestamp out of bounds for @ modifier: +Inf"),
    ("up @ NaN", "1:1: parse error: timestamp out of bounds for @ modifier: NaN"),
]
TYPES = [
    ("rate(up)", '1:6: parse error: expected type range vector in call to function "rate", got instant vector'),
    ("abs(5)", '1:5: parse error: expected type instant vector in call to function "abs", got scalar'),
    ("abs(up, up)", '1:1: parse error: expected 1 argument(s) in call to "abs", got 2'),
    ("round()", '1:1: parse error: expected at least 1 argument(s) in call to "round", got 0'),
    ("hour(up, up)", '1:1: parse error: expected at most 1 argument(s) in call to "hour", got 2'),
    ("label_join(up, 'a')", '1:1: parse error: expected at least 3 argument(s) in call to "label_join", got 2'),
    (
        "label_join(up, 'a', '', 'b', 5)",
        '1:30: parse error: expected type string in call to function "label_join", got scalar',
    ),
    ("sum(5)", "1:5: parse error: expected type instant vector in aggregation expression, got scalar"),
    ("topk('a', up)", "1:6: parse error: expected type scalar in aggregation parameter, got string"),
    ("count_values(1, up)", "1:14: parse error: expected type string in aggregation parameter, got scalar"),
    ("1 > 2", "1:3: parse error: comparisons between scalars must use BOOL modifier"),
    ("up + bool up", "1:4: parse error: bool modifier can only be used on comparison operators"),
    ("up and 5", '1:1: parse error: set operator "and" not allowed in binary scalar expression'),
    ("up + on (a) 5", "1:1: parse error: vector matching only allowed between instant vectors"),
    ("up or on (a) group_left up", '1:1: parse error: no grouping allowed for "or" operation'),
    ("up / on (a) group_left (a) up", '1:4: parse error: label "a" must not occur in ON and GROUP clause at once'),
    ("up[5m] + 1", "1:1: parse error: binary expression must contain only scalar and instant vector types"),
    ("1 + 'a'", "1:5: parse error: binary expression must contain only scalar and instant vector types"),
    (
        "-'a'",
        '1:1: parse error: unary expression only allowed on expressions of type scalar or instant vector, got "string"',
    ),
    (
        "-up[5m]",
        (
            "1:1: parse error: unary expression only allowed on expressions of type scalar or instant vector,"
            ' got "range vector"'
        ),
    ),
    ("(1)[5m:]", "1:1: parse error: subquery is only allowed on instant vector, got scalar instead"),
    ("up[5m][5m:]", "1:1: parse error: subquery is only allowed on instant vector, got matrix instead"),
]
FLAGGED = [
    ("up anchored", "1:1: parse error: anchored modifier is experimental and not enabled"),
    ("up[5m] smoothed", "1:1: parse error: smoothed modifier is experimental and not enabled"),
    ("a + fill(0) b", "1:1: parse error: binop fill modifiers are experimental and not enabled"),
    ("a + on (x) fill_left(-1) fill_right(2) b",
     "1:1: parse error: binop fill modifiers are experimental and not enabled"),
    ("limitk(1, up)",
     ("1:1: parse error: limitk() is experimental and must be enabled with"
     " --enable-feature=promql-experimental-functions")),
]  # fmt: skip


@pytest.mark.parametrize(("query", "message"), SYNTAX + BRACES + STRINGS + NUMBERS + MODIFIERS + TYPES + FLAGGED)
def test_errors_are_those_of_prometheus(query, message):
    assert refusal(query) == message


@pytest.mark.parametrize("name", sorted(name for name in FUNCTIONS if FUNCTIONS[name].is_experimental))
def test_experimental_functions_are_refused_by_name(name):
    assert refusal(f"{name}(up)") == f'1:1: parse error: function "{name}" is not enabled'


@pytest.mark.parametrize("expression", ["(", "a**", "[z-a]", "(?=a)", r"\\8", "a{2,1}"])
def test_regular_expressions_that_re2_rejects_are_rejected(expression):
    assert refusal(f'up{{a!="b", job=~"{expression}"}}').startswith("1:12: parse error: error parsing regexp: job=~")


def test_the_first_error_is_reported():
    assert refusal("nosuch(a) + 'b") == '1:1: parse error: unknown function with name "nosuch"'
    assert refusal("nosuch(a, 'b") == "1:11: parse error: unterminated quoted string"
    assert refusal("abs(5) + }") == "1:10: parse error: unexpected character: '}'"
