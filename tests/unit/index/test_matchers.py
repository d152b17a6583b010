"""PromQL's matchers over a real index, compared with evaluating them for each label set."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from strandline.errors import ExitCode
from strandline.index.documents import PartKeyBatch, encode_part_key
from strandline.index.matchers import (
    InvalidMatcher,
    Matcher,
    MatchOp,
    RegexBudget,
    matchers_named,
    matches_empty,
    to_query,
)
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.pylucene.failures import RegexTooCostly
from strandline.index.vm import start_vm
from support.expressions import ASCII_TEXTS, UNICODE_TEXTS, Expression, expressions, unicode_expressions

pytestmark = pytest.mark.unit

Labels = dict[str, str]
AMPLE = RegexBudget(max_terms=1_000_000, max_ms=60_000)
ONE_VALUE = RegexBudget(max_terms=1, max_ms=60_000)


def add(index: PartKeyIndex, keys: list[Labels], first_id: int = 0) -> None:
    ids = range(first_id, first_id + len(keys))
    index.add(PartKeyBatch.of(ids, [(0, i) for i in ids], map(encode_part_key, keys)))
    index.refresh()


@dataclass(frozen=True, slots=True)
class Case:
    """A matcher, and what it means for the value of its label, which is empty where a key has no such label."""

    matcher: Matcher
    means: Callable[[str], bool]


# Keys with values of `a` and `u`, with one of them, and with neither; in three segments, one with a deleted key.
KEYS: list[Labels] = [
    {"a": a, "u": u, "all": "x"} for a, u in zip(ASCII_TEXTS, itertools.cycle(UNICODE_TEXTS), strict=False)
]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PartKeyIndex]:
    start_vm()
    with PartKeyIndex.open(tmp_path_factory.mktemp("matchers")) as opened:
        for first_id in range(0, len(KEYS), 60):
            add(opened, KEYS[first_id : first_id + 60], first_id)
        add(opened, [{"a": "deleted"}], len(KEYS))
        opened.delete(BitMap([len(KEYS)]))
        opened.refresh()
        yield opened


def literal_case(label: str, op: MatchOp, value: str) -> Case:
    return Case(Matcher(label, op, value), lambda text: (text == value) == (op is MatchOp.EQUAL))


def expression_case(label: str, op: MatchOp, expression: Expression) -> Case:
    return Case(Matcher(label, op, expression.re2), lambda text: expression.matches(text) == (op is MatchOp.MATCH))


literal_ops = st.sampled_from([MatchOp.EQUAL, MatchOp.NOT_EQUAL])
expression_ops = st.sampled_from([MatchOp.MATCH, MatchOp.NOT_MATCH])
cases = st.one_of(
    st.builds(literal_case, st.just("a"), literal_ops, st.sampled_from(ASCII_TEXTS)),
    st.builds(literal_case, st.just("u"), literal_ops, st.sampled_from(UNICODE_TEXTS)),
    st.builds(literal_case, st.just("all"), literal_ops, st.sampled_from(["x", "y", ""])),
    st.builds(expression_case, st.sampled_from(["a", "missing"]), expression_ops, expressions()),
    st.builds(expression_case, st.just("u"), expression_ops, unicode_expressions()),
)


@given(st.lists(cases, max_size=3))
def test_matchers_find_the_keys_whose_values_they_all_match(full: PartKeyIndex, drawn: list[Case]) -> None:
    expected = [
        i for i, labels in enumerate(KEYS) if all(case.means(labels.get(case.matcher.label, "")) for case in drawn)
    ]
    assert full.search(to_query([case.matcher for case in drawn], AMPLE)) == BitMap(expected)
    assert [matches_empty(case.matcher) for case in drawn] == [case.means("") for case in drawn]


NAMED = {"none": {}, "x": {"a": "x"}, "xy": {"a": "xy"}, "y": {"a": "y"}, "line": {"a": "x\ny"}, "X": {"a": "X"}}
EVERY = set(NAMED)


@pytest.mark.parametrize(
    ("op", "value", "found"),
    [
        ("=", "x", {"x"}),
        ("=", "z", set()),
        ("=", "", {"none"}),
        ("!=", "x", EVERY - {"x"}),
        ("!=", "", EVERY - {"none"}),
        ("!=", "z", EVERY),
        ("=~", "x", {"x"}),
        ("=~", "", {"none"}),
        ("=~", "x|y", {"x", "y"}),
        ("=~", "x|", {"x", "none"}),
        ("=~", ".*", EVERY),
        ("=~", ".+", EVERY - {"none"}),
        ("=~", ".+|", EVERY),
        ("=~", "x.*", {"x", "xy", "line"}),
        ("=~", "x.+", {"xy", "line"}),
        ("=~", "x.y", {"line"}),
        ("=~", "x.?y", {"xy", "line"}),
        ("=~", "(?-s)x.+", {"xy"}),
        ("=~", "xy?", {"x", "xy"}),
        ("=~", "xy*", {"x", "xy"}),
        ("=~", "x|y.*", {"x", "y"}),
        ("=~", "(x.*|)", {"x", "xy", "line", "none"}),
        ("=~", "x*", {"x", "none"}),
        ("=~", "^x$", {"x"}),
        ("=~", "(?i)x", {"x", "X"}),
        ("=~", "(?i:x)y?", {"x", "X", "xy"}),
        ("=~", "[^x]", {"y", "X"}),
        ("=~", r"\x78", {"x"}),
        ("=~", r"\pL", {"x", "y", "X"}),
        ("=~", r"\p{Lu}", {"X"}),
        ("=~", r"\Qx\Ey", {"xy"}),
        ("=~", "^$", {"none"}),
        ("=~", r"\B", {"none"}),
        ("=~", r"\b", set()),
        ("!~", "x", EVERY - {"x"}),
        ("!~", "x.*", {"none", "y", "X"}),
        ("!~", "x.+", {"none", "x", "y", "X"}),
        ("!~", "x|", {"xy", "y", "line", "X"}),
        ("!~", ".*", set()),
        ("!~", ".+", {"none"}),
        ("!~", "", EVERY - {"none"}),
        ("!~", "x*", {"xy", "y", "line", "X"}),
        ("!~", "[^x]", EVERY - {"y", "X"}),
    ],
)
def test_a_label_that_a_key_lacks_has_the_empty_value(
    index: PartKeyIndex, op: str, value: str, found: set[str]
) -> None:
    add(index, [{**labels, "name": name} for name, labels in NAMED.items()])
    query = to_query([Matcher("a", MatchOp(op), value)], AMPLE)
    assert {list(NAMED)[i] for i in index.search(query)} == found


def test_matchers_of_one_label_must_all_hold(index: PartKeyIndex) -> None:
    add(index, [{"a": "x1"}, {"a": "x2"}, {"a": "y1"}, {}])
    one, two = Matcher("a", MatchOp.MATCH, "x.*"), Matcher("a", MatchOp.NOT_EQUAL, "x2")
    assert index.search(to_query([one, two, one], AMPLE)) == BitMap([0])
    assert index.search(to_query([one, Matcher("a", MatchOp.EQUAL, "y1")], AMPLE)) == BitMap()
    assert index.search(to_query([], AMPLE)) == BitMap([0, 1, 2, 3])


@pytest.mark.parametrize(
    "expression", ["value-7", "value-7|value-8", "value-(7|8)", "value-[0-9]", "value-.*", "value-.+", "v.*|w.*", ".+"]
)
def test_a_list_or_a_prefix_costs_no_matching(index: PartKeyIndex, expression: str) -> None:
    add(index, [{"a": f"value-{i}"} for i in range(100)])
    assert index.search(to_query([Matcher("a", MatchOp.MATCH, expression)], ONE_VALUE))


def test_only_values_with_the_text_that_an_expression_starts_with_are_examined(index: PartKeyIndex) -> None:
    add(index, [{"a": f"{letter}-{i}"} for letter in "abc" for i in range(10)])
    budget = RegexBudget(max_terms=10, max_ms=60_000)
    assert index.search(to_query([Matcher("a", MatchOp.MATCH, "b-[5-9]+")], budget)) == BitMap(range(15, 20))
    with pytest.raises(RegexTooCostly):
        index.search(to_query([Matcher("a", MatchOp.MATCH, ".-[5-9]+")], budget))


def test_an_expression_that_is_too_costly_is_named_in_the_error(index: PartKeyIndex) -> None:
    add(index, [{"a": f"value-{i}"} for i in range(100)])
    matchers = [Matcher("b", MatchOp.NOT_EQUAL, "x"), Matcher("a", MatchOp.MATCH, ".*7")]
    with pytest.raises(RegexTooCostly, match=r'^a=~"\.\*7": .*more than 99 terms') as refused, matchers_named(matchers):
        index.search(to_query(matchers, RegexBudget(max_terms=99, max_ms=60_000)))
    assert refused.value.examined_terms == 99
    assert "Start it with plain text" in refused.value.remedy


def test_expressions_of_one_search_share_the_budget(index: PartKeyIndex) -> None:
    add(index, [{"a": f"value-{i}", "b": f"value-{i}"} for i in range(60)])
    matchers = [Matcher("a", MatchOp.MATCH, ".*7"), Matcher("b", MatchOp.NOT_MATCH, ".*17")]
    assert index.search(to_query(matchers, RegexBudget(120, 60_000))) == BitMap([7, 27, 37, 47, 57])
    with pytest.raises(RegexTooCostly, match=r'a=~"\.\*7" or b!~"\.\*17": '), matchers_named(matchers):
        index.search(to_query(matchers, RegexBudget(119, 60_000)))


def test_an_expression_that_is_far_too_large_is_refused_by_name() -> None:
    start_vm()
    with pytest.raises(RegexTooCostly, match=r"^b=~.*more than 100000 steps"):
        to_query([Matcher("b", MatchOp.MATCH, "((a{1000}){1000}){1000}")], AMPLE)


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("a(", "a group without its"),
        ("a**", "a repetition of nothing or of a repetition"),
        ("[z-a]", "a range z-a that is not in order"),
        (r"\p{Nonsense}", "invalid character class range"),
        ("(?=a)", "a group of an unknown kind"),
        ("a|[b", "a class without its ]"),
    ],
)
@pytest.mark.parametrize("op", [MatchOp.MATCH, MatchOp.NOT_MATCH])
def test_an_invalid_expression_is_refused_with_its_matcher_and_error(op: MatchOp, expression: str, fault: str) -> None:
    start_vm()
    matcher = Matcher("job", op, expression)
    with pytest.raises(InvalidMatcher) as refused:
        to_query([matcher], AMPLE)
    assert str(refused.value).startswith(f"{matcher}: ")
    assert fault in str(refused.value)
    assert refused.value.exit_code is ExitCode.USAGE


def test_a_literal_is_taken_as_it_is(index: PartKeyIndex) -> None:
    texts = ["a.*", "a(", "\\", '"', " ", "\x00", "😀"]
    add(index, [{"a": text} for text in texts])
    for i, text in enumerate(texts):
        assert index.search(to_query([Matcher("a", MatchOp.EQUAL, text)], AMPLE)) == BitMap([i])


def test_a_value_longer_than_any_label_matches_nothing(index: PartKeyIndex) -> None:
    add(index, [{"a": "x"}, {}])
    too_long = "é" * 40_000
    for op in (MatchOp.EQUAL, MatchOp.MATCH):
        assert index.search(to_query([Matcher("a", op, too_long)], AMPLE)) == BitMap()
    for op in (MatchOp.NOT_EQUAL, MatchOp.NOT_MATCH):
        assert index.search(to_query([Matcher("a", op, too_long)], AMPLE)) == BitMap([0, 1])
    assert index.search(to_query([Matcher("a", MatchOp.MATCH, f"x|{too_long}")], AMPLE)) == BitMap([0])
    assert index.search(to_query([Matcher("a", MatchOp.MATCH, f"{too_long}.*")], AMPLE)) == BitMap()


@pytest.mark.parametrize("length", [1, 200, 201, 2000])
def test_a_prefix_that_is_too_long_for_lucene_is_found_by_matching(index: PartKeyIndex, length: int) -> None:
    prefix = "😀" * length
    add(index, [{"a": prefix}, {"a": prefix + "x"}, {"a": prefix[1:]}, {}])
    assert index.search(to_query([Matcher("a", MatchOp.MATCH, f"{prefix}.*")], AMPLE)) == BitMap([0, 1])
    assert index.search(to_query([Matcher("a", MatchOp.MATCH, f"{prefix}.+")], AMPLE)) == BitMap([1])


def test_a_list_may_have_thousands_of_values(index: PartKeyIndex) -> None:
    add(index, [{"a": f"v.{i}"} for i in range(100)])
    listed = "|".join(rf"v\.{i}" for i in range(50, 20_000))
    assert index.search(to_query([Matcher("a", MatchOp.MATCH, listed)], AMPLE)) == BitMap(range(50, 100))


def test_more_matchers_than_lucene_takes_are_refused(index: PartKeyIndex) -> None:
    add(index, [{"a": "x"}, {"a": "499"}])
    many = [Matcher("a", MatchOp.NOT_EQUAL, str(i)) for i in range(500)]
    assert index.search(to_query(many, AMPLE)) == BitMap([0])
    assert index.search(to_query(many * 3, AMPLE)) == BitMap([0])
    assert index.search(to_query([Matcher("b", MatchOp.MATCH, f"{i}|") for i in range(500)], AMPLE)) == BitMap([0, 1])
    longer = "|".join(f"{i}.+" for i in range(64))
    seven = [Matcher(f"b{i}", MatchOp.NOT_MATCH, longer) for i in range(7)]
    assert index.search(to_query(seven, AMPLE)) == BitMap([0, 1])
    with pytest.raises(InvalidMatcher, match="501 matchers make 1002 clauses"):
        to_query([*many, Matcher("a", MatchOp.EQUAL, "x")], AMPLE)
    with pytest.raises(InvalidMatcher, match="8 matchers make 1040 clauses"):
        to_query([*seven, Matcher("c", MatchOp.NOT_MATCH, longer)], AMPLE)


def test_a_matcher_is_printed_as_in_promql() -> None:
    assert str(Matcher("job", MatchOp.MATCH, 'a"b\\n')) == 'job=~"a\\"b\\\\n"'
    assert str(Matcher("a.b", MatchOp.NOT_EQUAL, "é")) == '"a.b"!="é"'
    assert len(str(Matcher("a", MatchOp.EQUAL, "x" * 10_000))) < 250


def test_half_a_surrogate_pair_and_an_empty_budget_are_refused() -> None:
    for label, value in (("a", "\ud800"), ("\ud800", "a")):
        with pytest.raises(InvalidMatcher, match="surrogate"):
            Matcher(label, MatchOp.EQUAL, value)
    for max_terms, max_ms in ((0, 1), (1, 0)):
        with pytest.raises(InvalidMatcher, match="budget"):
            RegexBudget(max_terms, max_ms)
