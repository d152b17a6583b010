"""Selectors as text, in the grammar of PromQL."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.errors import ExitCode
from strandline.index.matchers import InvalidMatcher, Matcher, MatchOp
from strandline.index.selectors import InvalidSelector, parse_selector, require_a_non_empty_matcher, simple_matchers

pytestmark = pytest.mark.unit


def named(name: str) -> Matcher:
    return Matcher("__name__", MatchOp.EQUAL, name)


def matcher(label: str, op: str, value: str) -> Matcher:
    return Matcher(label, MatchOp(op), value)


@pytest.mark.parametrize(
    ("selector", "matchers"),
    [
        ("up", (named("up"),)),
        ("job:rate:5m", (named("job:rate:5m"),)),
        (":a", (named(":a"),)),
        ("up{}", (named("up"),)),
        ("{}", ()),
        ('up{job="a"}', (named("up"), matcher("job", "=", "a"))),
        ('{a="1",b!="2",c=~"3",d!~"4"}', tuple(map(matcher, "abcd", ["=", "!=", "=~", "!~"], "1234"))),
        ('up{job=~"a|b", x!="y"}', (named("up"), matcher("job", "=~", "a|b"), matcher("x", "!=", "y"))),
        ('{a="1",}', (matcher("a", "=", "1"),)),
        ('{a="1",a!="2"}', (matcher("a", "=", "1"), matcher("a", "!=", "2"))),
        ('{__name__=~"a.*", __name__!="ab"}', (matcher("__name__", "=~", "a.*"), matcher("__name__", "!=", "ab"))),
        ('{on="1", by="2", bool="3"}', tuple(map(matcher, ["on", "by", "bool"], "===", "123"))),
        ("sum", (named("sum"),)),
        ("by{}", (named("by"),)),
        ("online", (named("online"),)),
    ],
)
def test_a_selector_is_a_name_and_matchers(selector: str, matchers: tuple[Matcher, ...]) -> None:
    assert parse_selector(selector) == matchers


@pytest.mark.parametrize(
    ("selector", "matchers"),
    [
        ('{"metric.name"}', (named("metric.name"),)),
        ('{"metric.name", "a.b"="c"}', (named("metric.name"), matcher("a.b", "=", "c"))),
        ('{"a.b"=~"c", "metric.name",}', (matcher("a.b", "=~", "c"), named("metric.name"))),
        ("{'é', `a b`!='c'}", (named("é"), matcher("a b", "!=", "c"))),
        (r'{"a\"b"="c"}', (matcher('a"b', "=", "c"),)),
        ('up{"a.b"="c"}', (named("up"), matcher("a.b", "=", "c"))),
        ('{"up", __name__!="x"}', (named("up"), matcher("__name__", "!=", "x"))),
        ('{"on"}', (named("on"),)),
    ],
)
def test_names_with_special_characters_are_in_quotes(selector: str, matchers: tuple[Matcher, ...]) -> None:
    assert parse_selector(selector) == matchers


@pytest.mark.parametrize(
    ("quoted", "value"),
    [
        ('""', ""),
        ('"a b\té😀"', "a b\té😀"),
        ("'a\"b'", 'a"b'),
        ('"a\'b"', "a'b"),
        (r"'a\'b'", "a'b"),
        (r'"\a\b\f\n\r\t\v\\\""', '\a\b\f\n\r\t\v\\"'),
        (r'"\x41\101\u00e9\U0001F600"', "AAé😀"),
        (r'"\xc3\xa9\303\251"', "éé"),
        (r'"a\\.b"', r"a\.b"),
        (r"`a\.b\n\x41`", r"a\.b\n\x41"),
        ("`a\nb\"'`", "a\nb\"'"),
        ("``", ""),
        ('"#{}=,"', "#{}=,"),
    ],
)
def test_strings_are_quoted_in_three_ways(quoted: str, value: str) -> None:
    assert parse_selector(f"{{a={quoted}}}") == (matcher("a", "=", value),)
    assert parse_selector(f"{{{quoted}=`x`}}") == (matcher(value, "=", "x"),)


def test_white_space_and_comments_may_be_between_any_tokens() -> None:
    selector = """ # first
        up # the name, {"not this"}
        { # inside
            job \t =~ # behind the operator
            "a#b" , # behind a comma
            x != 'y'\r
        } # last"""
    assert parse_selector(selector) == (named("up"), matcher("job", "=~", "a#b"), matcher("x", "!=", "y"))


@pytest.mark.parametrize(
    ("selector", "position", "fault"),
    [
        ("", 0, 'expected a metric name or "{", found the end'),
        ("  # a comment", 13, 'expected a metric name or "{", found the end'),
        ("1up", 0, "expected a metric name"),
        ('"up"', 0, "expected a metric name"),
        ("é", 0, "expected a metric name"),
        ("up{", 3, 'expected a label name or "}", found the end'),
        ("{,}", 1, "expected a label name or \"}\", found ',}'"),
        ('{a="b",,}', 7, 'expected a label name or "}"'),
        ('{a="b" c="d"}', 7, 'expected "," or "}", found \'c="d"}\''),
        ('{a="b"', 6, 'expected "," or "}", found the end'),
        ("{a}", 2, "expected one of = != =~ !~"),
        ('{a=="b"}', 3, "expected a string in quotes"),
        ('{a!"b"}', 2, "expected one of = != =~ !~"),
        ('{a~"b"}', 2, "expected one of = != =~ !~"),
        ('{a:b="c"}', 2, "expected one of = != =~ !~"),
        ("{a=b}", 3, "expected a string in quotes"),
        ("{a=1}", 3, "expected a string in quotes"),
        ('{"a" "b"}', 5, "expected one of = != =~ !~"),
        ('{1a="b"}', 1, "expected a label name"),
        ("up{}}", 4, "expected the end of the selector"),
        ("up down", 3, "expected the end of the selector, found 'down'"),
        ("up[5m]", 2, "expected the end of the selector"),
        ("up offset 5m", 3, "expected the end of the selector"),
        ('{a="b}', 3, 'a string without its closing "'),
        ('{a="b\n"}', 3, 'a string without its closing "'),
        ("{a='b\"}", 3, "a string without its closing '"),
        ("{a=`b}", 3, "a string without its closing `"),
        (r'{a="\q"}', 4, r"an unknown escape \q"),
        (r'{a="\'"}', 4, r"an unknown escape \'"),
        (r'{a="b\"}', 3, 'a string without its closing "'),
        (r'{a="\x4"}', 4, r"an unknown escape \x"),
        (r'{a="\18"}', 4, r"an unknown escape \1"),
        (r'{a="\400"}', 4, r"an escape \400 for a character that does not exist"),
        (r'{a="\ud800"}', 4, r"an escape \ud800 for a character that does not exist"),
        (r'{a="\U00110000"}', 4, "for a character that does not exist"),
        (r'{a="\xff"}', 3, "not valid UTF-8"),
        ('up{__name__="down"}', 3, 'given twice, the second time as __name__="down"'),
        ('up{a="b", __name__!="down"}', 10, "given twice"),
        ('up{"down"}', 3, "given twice"),
        ('{"up", "down"}', 7, 'given twice, the second time as __name__="down"'),
    ],
)
def test_an_invalid_selector_is_refused_with_position_and_expectation(selector: str, position: int, fault: str) -> None:
    with pytest.raises(InvalidSelector) as refused:
        parse_selector(selector)
    assert refused.value.position == position
    assert fault in str(refused.value)
    assert f"at character {position + 1}" in str(refused.value)
    assert refused.value.exit_code is ExitCode.USAGE


@pytest.mark.parametrize("word", ["on", "bool", "ignoring", "group_left", "GROUP_RIGHT", "atan2", "nan", "Inf"])
def test_reserved_words_are_not_metric_names_without_quotes(word: str) -> None:
    with pytest.raises(InvalidSelector, match=f'Write {{"{word}"}} for the metric'):
        parse_selector(f'{word}{{a="b"}}')


@pytest.mark.parametrize(
    "selector", ["{}", '{a=""}', '{a=~".*"}', '{a!="x"}', '{a!~".+"}', '{a=~"x|",b!="y"}', '{a=~"x*"}']
)
def test_a_selector_whose_matchers_all_match_the_empty_value_is_refused(selector: str) -> None:
    with pytest.raises(InvalidSelector, match="without any of its labels") as refused:
        require_a_non_empty_matcher(parse_selector(selector))
    assert refused.value.exit_code is ExitCode.USAGE


@pytest.mark.parametrize("selector", ["up", '{a="x"}', '{a!=""}', '{a=~".+"}', '{a!~".*"}', '{a=~".*",b="x"}', "up{}"])
def test_one_matcher_that_does_not_match_the_empty_value_is_enough(selector: str) -> None:
    require_a_non_empty_matcher(parse_selector(selector))


def test_an_invalid_expression_is_not_taken_for_one_that_matches_the_empty_value() -> None:
    with pytest.raises(InvalidMatcher, match="a group without its"):
        require_a_non_empty_matcher(parse_selector('{a=~"("}'))


any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
any_matcher = st.builds(Matcher, any_text, st.sampled_from(MatchOp), any_text)


@given(st.lists(any_matcher, max_size=4), st.sampled_from([",", " , ", "\n,\t", ", # and\n"]))
def test_printed_matchers_are_parsed_to_the_same_matchers(drawn: list[Matcher], comma: str) -> None:
    assert parse_selector(f"{{{comma.join(map(str, drawn))}}}") == tuple(drawn)


@given(any_text)
def test_any_value_survives_quoting(value: str) -> None:
    assert parse_selector(f"{{a={json.dumps(value, ensure_ascii=False)}}}") == (matcher("a", "=", value),)
    every_byte = "".join(f"\\x{byte:02x}" for byte in value.encode())
    assert parse_selector(f"{{a='{every_byte}'}}") == (matcher("a", "=", value),)
    every_character = "".join(f"\\U{ord(character):08x}" for character in value)
    assert parse_selector(f'{{a="{every_character}"}}') == (matcher("a", "=", value),)
    if "`" not in value:
        assert parse_selector(f"{{a=`{value}`}}") == (matcher("a", "=", value),)


@given(st.text(st.sampled_from("up{}\"'`=!~, #\\nx1é\n"), max_size=12))
def test_any_text_is_parsed_or_refused_with_a_position(text: str) -> None:
    try:
        matchers = parse_selector(text)
    except InvalidSelector as refused:
        position = refused.position
    else:
        position = len(text) if matchers or "{" in text else -1
    assert 0 <= position <= len(text)


@given(
    st.one_of(
        st.text(st.sampled_from('aon_:{}"=!~, \\é9'), max_size=14),
        st.builds(
            lambda name, first, second, end: f"{name}{{{first}{second}{end}}}",
            st.sampled_from(["", "up", "On", "nan", "a:b", "__name__"]),
            st.sampled_from(['a="b"', 'a!="b"', '__name__="c"', 'a=~"x|y"', 'a="é"', 'a="\\n"', "a='b'", ""]),
            st.sampled_from(["", ',b="c"', ',b!~"d"', 'b="c"', ', b="c"', ',__name__=""']),
            st.sampled_from(["", ",", ",,", " "]),
        ),
    )
)
def test_a_simple_selector_gives_the_same_matchers_as_the_parser(selector: str) -> None:
    if simple := simple_matchers(selector):
        # A blank in front lets the parser read it.
        parsed = parse_selector(" " + selector)
        assert [(matcher.label, matcher.op.value, matcher.value) for matcher in parsed] == simple
        assert parse_selector(selector) == parsed


@pytest.mark.parametrize("selector", ["up", 'up{job="a"}', '{a="b",c!~"d",}'])
def test_common_selectors_are_simple(selector: str) -> None:
    assert simple_matchers(selector)


@pytest.mark.parametrize("selector", ["on", 'INF{a="b"}', 'up{__name__="up"}', 'up {a="b"}', '{a="\\n"}', "{}", ""])
def test_selectors_with_special_rules_are_not_simple(selector: str) -> None:
    assert simple_matchers(selector) == []
