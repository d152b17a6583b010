"""The analysis of expressions, which is pure: no index, compared with Python's own expressions."""

import contextlib
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.errors import ExitCode
from strandline.index.regular_expressions import Alternatives, General, InvalidExpression, Shape, analyse
from support.expressions import ASCII_TEXTS, Expression, expressions

pytestmark = pytest.mark.unit


def values(*listed: str) -> Alternatives:
    return Alternatives(values=frozenset(listed))


def prefixes(*listed: str) -> Alternatives:
    return Alternatives(prefixes=frozenset(listed))


def longer_than(*listed: str) -> Alternatives:
    return Alternatives(longer_than=frozenset(listed))


def general(prefix: str = "", *, matches_empty: bool = False) -> General:
    return General(prefix, matches_empty)


@pytest.mark.parametrize(
    ("expression", "shape"),
    [
        ("abc", values("abc")),
        ("", values("")),
        ("é😀\n", values("é😀\n")),
        ("a-b_c:d/e ]}", values("a-b_c:d/e ]}")),
        (r"10\.0\.0\.1:9100", values("10.0.0.1:9100")),
        (r"\Qa.b*\E", values("a.b*")),
        (r"a\Q.|(\Eb", values("a.|(b")),
        (r"\Qa\b", values(r"a\b")),
        (r"\x41\x{e9}\x{1F600}\101\07\n\t\\\_", values("Aé😀A\x07\n\t\\_")),
        ("(?:a)(b)((c))", values("abc")),
        ("()", values("")),
        ("a{", values("a{")),
        ("a{,2}", values("a{,2}")),
        ("a{01}", values("a{01}")),
        ("a{x}{", values("a{x}{")),
        ("a{3}", values("aaa")),
        ("a{1}?", values("a")),
        ("[a]", values("a")),
        (r"[\.]", values(".")),
        ("(?s)a", values("a")),
        ("(?m)a", values("a")),
        ("(?-i:a)", values("a")),
        ("(?i)(?-i)a", values("a")),
    ],
)
def test_literal_text_is_one_value(expression: str, shape: Shape) -> None:
    assert analyse(expression) == shape


@pytest.mark.parametrize(
    ("expression", "shape"),
    [
        ("a|b|c", values("a", "b", "c")),
        ("a|", values("a", "")),
        ("|", values("")),
        (r"a\|b|c", values("a|b", "c")),
        ("web-(1|2|3)", values("web-1", "web-2", "web-3")),
        ("(a|b)-(c|d)", values("a-c", "a-d", "b-c", "b-d")),
        ("(?:a|(b|(?:c|d)))x", values("ax", "bx", "cx", "dx")),
        ("a(|b)", values("a", "ab")),
        ("ab?c", values("abc", "ac")),
        ("ab??c", values("abc", "ac")),
        ("(ab){1,2}", values("ab", "abab")),
        ("a{0}b", values("b")),
        ("[abc]", values("a", "b", "c")),
        ("x[a-c2]", values("xa", "xb", "xc", "x2")),
        ("[]-]", values("]", "-")),
        ("[[:]", values("[", ":")),
        (r"[\x41-C\n\]]", values("A", "B", "C", "\n", "]")),
        (r"v\d", values(*(f"v{digit}" for digit in range(10)))),
        ("[0-9]{2}", values(*(f"{number:02}" for number in range(100)))),
    ],
)
def test_a_list_is_its_values(expression: str, shape: Shape) -> None:
    assert analyse(expression) == shape


@pytest.mark.parametrize(
    ("expression", "shape"),
    [
        ("abc.*", prefixes("abc")),
        ("abc.+", longer_than("abc")),
        (".*", prefixes("")),
        (".+", longer_than("")),
        ("a.*?", prefixes("a")),
        ("a(.*)", prefixes("a")),
        ("a(?:.)*", prefixes("a")),
        ("a.*.*", prefixes("a")),
        ("a.*.+", longer_than("a")),
        ("a.+.*", longer_than("a")),
        ("(.+)*", prefixes("")),
        ("(.*)+", prefixes("")),
        ("(a|b).*", prefixes("a", "b")),
        ("a.*|b.*", prefixes("a", "b")),
        ("a|b.*", Alternatives(frozenset("a"), frozenset("b"))),
        ("a|b.*|c.+", Alternatives(frozenset("a"), frozenset("b"), frozenset("c"))),
        (r"a\..*", prefixes("a.")),
        ("(?-s)(?s).*", prefixes("")),
    ],
)
def test_a_wildcard_after_a_text_is_a_prefix(expression: str, shape: Shape) -> None:
    assert analyse(expression) == shape


@pytest.mark.parametrize(
    ("expression", "shape"),
    [
        ("^a$", values("a")),
        (r"\Aa\z", values("a")),
        ("^a|b$", values("a", "b")),
        ("^(a|b)$", values("a", "b")),
        ("(^a|^b)(c$|d$)", values("ac", "ad", "bc", "bd")),
        ("^a.*$", prefixes("a")),
        ("^$", values("")),
        ("(?m)^a$", values("a")),
        ("a^b", general("ab")),
        ("a$b", general("ab")),
        ("(^a)?b", general()),
        ("a(|^)b", general("ab")),
    ],
)
def test_anchors_where_they_hold_anyway_change_nothing_and_elsewhere_leave_it_to_matching(
    expression: str, shape: Shape
) -> None:
    assert analyse(expression) == shape


@pytest.mark.parametrize(
    ("expression", "shape"),
    [
        ("abc*", general("ab")),
        ("abc+", general("abc")),
        ("ab(cd)*", general("ab")),
        ("abc{2,}", general("abc")),
        ("a.c", general("a")),
        ("a.*c", general("a")),
        (".*c", general()),
        ("a.+.+", general("a")),
        ("ab[^c]", general("ab")),
        (r"ab\pN", general("ab")),
        (r"ab\p{Greek}\x{62}", general("ab")),
        (r"ab\w", general("ab")),
        ("ab[[:alpha:]]", general("ab")),
        (r"\Qa.b\E*", general("a.")),
        (r"a\.*", general("a")),
        (r"ab\Q\E*", general("a")),
        ("ab(?i)*", general("a")),
        ("web-[0-9]+", general("web-")),
        ("web-(a.c|a.d)", general("web-a")),
        ("(ab.c|ac.c|a)", general("a")),
        ("(ab.c|)", general(matches_empty=True)),
        ("a*", general(matches_empty=True)),
        ("(?i)abc", general()),
        ("a(?i)b", general("a")),
        ("(?i:a)b", general()),
        ("a(?i:b)c", general("a")),
        ("(?i:)ab", values("ab")),
        ("(?i)(?-i:a)b", general("a")),
        ("(?-s:a)b.*", prefixes("ab")),
        ("(?-s)(?s:a).*", general("a")),
        ("(a(?i)b|c)d", general()),
        ("a|(?i)b|c", general()),
        ("(?i)[a]", general()),
        ("(?i)", values("")),
        ("(?-s)a.*", general("a")),
        ("(?-s:a.)b.*", general("a")),
        ("(?P<name>a)", general("a")),
        (r"\b", general()),
        (r"\B", general(matches_empty=True)),
        (r"^\B$", general(matches_empty=True)),
        (r"\x{d800}a", general()),
        (r"\p{Nonsense}", general()),
        (r"([\d-z]|[\w-[:alpha:]])b", general()),
    ],
)
def test_other_expressions_are_left_to_matching_with_prefix_and_emptiness_known(expression: str, shape: Shape) -> None:
    assert analyse(expression) == shape


@pytest.mark.parametrize(
    ("expression", "fault", "position"),
    [
        ("ab(", "a group without its )", 2),
        ("ab)", "a ) without its group", 2),
        ("a[bc", "a class without its ]", 1),
        ("[]", "a class without its ]", 0),
        ("a[b-dz-y]", "a range z-y that is not in order", 5),
        ("*a", "a repetition of nothing", 0),
        ("a|*", "a repetition of nothing", 2),
        ("(?i)*", "a repetition of nothing", 4),
        ("a**", "a repetition of nothing or of a repetition", 2),
        ("a{2}{3}", "a repetition of nothing or of a repetition", 6),
        ("a{1001}", "repeats from 1001", 1),
        ("a{2,1}", "repeats from 2 to 1", 1),
        ("a{" + "9" * 10_000 + "}", "more than 1000 repeats", 1),
        ("a\\", "an unknown escape", 1),
        (r"\8", "an unknown escape", 0),
        (r"(a)\1", "an unknown escape", 3),
        (r"\C", "an unknown escape", 0),
        (r"\Z", "an unknown escape", 0),
        (r"\é", "an unknown escape", 0),
        (r"\x4", "an unknown escape", 0),
        (r"\x{110000}", "an unknown escape", 0),
        (r"\p", "an unknown escape", 0),
        ("(?=a)", "a group of an unknown kind", 0),
        ("(?z)", "a group of an unknown kind", 0),
        ("(?-)", "a group of an unknown kind", 0),
        ("(?P<a-b>c)", "a group of an unknown kind", 0),
        ("(" * 1001 + ")" * 1001, "groups more than 1000 deep", 1000),
    ],
)
def test_an_invalid_expression_is_refused_with_the_position(expression: str, fault: str, position: int) -> None:
    with pytest.raises(InvalidExpression, match=re.escape(fault)) as refused:
        analyse(expression)
    assert refused.value.position == position
    assert refused.value.exit_code is ExitCode.USAGE


@given(expressions())
def test_alternatives_are_exact_and_what_is_known_of_the_rest_is_true(expression: Expression) -> None:
    shape = analyse(expression.re2)
    matches = [text for text in ASCII_TEXTS if expression.matches(text)]
    assert shape.matches_empty == ("" in matches)
    if isinstance(shape, General):
        assert all(text.startswith(shape.prefix) for text in matches)
    else:
        assert [text for text in ASCII_TEXTS if accepts(shape, text)] == matches
        assert all(expression.matches(text) for text in shape.values | shape.prefixes)
        assert all(expression.matches(text + "?") for text in shape.prefixes | shape.longer_than)


def accepts(shape: Alternatives, text: str) -> bool:
    return (
        text in shape.values
        or any(text.startswith(prefix) for prefix in shape.prefixes)
        or any(text.startswith(prefix) and text != prefix for prefix in shape.longer_than)
    )


@given(st.text(st.sampled_from("ab.*+?()[]{}|^$\\QEipP<>:-,1é"), max_size=12))
def test_any_text_is_analysed_or_refused(expression: str) -> None:
    with contextlib.suppress(InvalidExpression):
        assert isinstance(analyse(expression), Alternatives | General)


@given(st.lists(st.text(max_size=5), max_size=5))
def test_a_list_of_escaped_values_is_these_values(listed: list[str]) -> None:
    signs = re.compile(r"[\\.+*?()|\[\]{}^$]")
    assert analyse("|".join(signs.sub(r"\\\g<0>", value) for value in listed)) == values(*(listed or [""]))


def test_long_lists_stay_lists_and_large_products_do_not() -> None:
    names = [f"pod-{number}.example" for number in range(20_000)]
    assert analyse("|".join(names).replace(".", r"\.")) == values(*names)
    assert analyse("web-(?:" + "|".join(names).replace(".", r"\.") + ")") == values(*("web-" + name for name in names))
    assert analyse("x[0-9]{3}") == values(*(f"x{number:03}" for number in range(1000)))
    assert analyse("x[0-9]{4}") == general("x")
    assert analyse("x(a{2}){2}") == general("xaa")
    assert analyse("é" * 200 + ".*") == prefixes("é" * 200)
    assert analyse("é" * 201 + ".*") == general("é" * 201)
    assert analyse("|".join(f"a{letter:x}.*" for letter in range(1000))) == general("a")


@pytest.mark.parametrize(
    "expression",
    [
        "[0-9]{3}|" * 5_000,
        "(a){8}" * 8_000,
        "(0|1)" + "(a)" * 20_000,
        ("(a" * 900 + ")" * 900) * 15,
        ("(" + "a" * 100) * 900 + "|b" + ")" * 900,
        "a?" * 20_000,
        "[" + "[:a" * 30_000 + "]",
        "[[:" * 33_000,
        "a" * 99_999 + "{",
        r"\p{" * 30_000,
        "(?:(a|b)" * 900 + ")" * 900,
    ],
)
def test_a_hostile_expression_takes_no_more_than_seconds(expression: str) -> None:
    start = time.process_time()
    with contextlib.suppress(InvalidExpression):
        analyse(expression)
    assert time.process_time() - start < 5
