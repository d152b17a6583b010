"""Regular expressions over label values: what they match, and the limits of their cost.

The test with a model covers the other queries.
"""

import re
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from strandline.index.documents import MalformedBatch, PartKeyBatch, encode_part_key
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.pylucene.classes import Query, java
from strandline.index.pylucene.failures import InvalidRegex, RegexTooCostly, java_failures
from strandline.index.pylucene.queries import all_of, everything, label_is, label_matches, part_id_in
from strandline.index.vm import start_vm, to_java

pytestmark = pytest.mark.unit

# All texts of up to three of these letters, so that expressions with these letters match some of them.
LETTERS = "aAb\né😀"
VALUES = sorted({a + b + c for a in ["", *LETTERS] for b in ["", *LETTERS] for c in LETTERS})


def fill(index: PartKeyIndex, values: list[str]) -> None:
    ids = range(len(values))
    index.add(PartKeyBatch.of(ids, [(0, i) for i in ids], [encode_part_key({"a": value}) for value in values]))
    index.refresh()


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PartKeyIndex]:
    start_vm()
    with PartKeyIndex.open(tmp_path_factory.mktemp("full")) as opened:
        fill(opened, VALUES)
        yield opened


def matching(expression: str, *, prefix: str = "", max_terms: int = 1_000_000, max_ms: int = 60_000) -> Query:
    return label_matches("a", expression, prefix=prefix, max_terms=max_terms, max_ms=max_ms)


expressions = st.recursive(
    st.sampled_from([*LETTERS, ".", "[ab]", "[^a]", "[é😀]"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}"])).map(lambda two: f"(?:{two[0]}){two[1]}"),
    ),
    max_leaves=6,
)


@given(expressions)
def test_an_expression_matches_whole_values_by_case_and_across_line_feeds(full: PartKeyIndex, expression: str) -> None:
    expected = [i for i, value in enumerate(VALUES) if re.fullmatch(expression, value, re.DOTALL)]
    assert full.search(matching(expression)) == BitMap(expected)


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("a|ab", ["a", "ab"]),
        ("(?i)AB", ["ab", "Ab"]),
        ("^a$", ["a"]),
        (r"a\n", ["a\n"]),
        (r"\pL\x{62}", ["ab", "Ab", "bb", "éb"]),
        ("", []),
    ],
)
def test_expressions_have_re2s_syntax(full: PartKeyIndex, expression: str, found: list[str]) -> None:
    assert full.search(matching(expression)) == BitMap([VALUES.index(value) for value in found])


@pytest.mark.parametrize("expression", [r".^", r".^.*", r".*\A.", r"(é|a)^.?", r".\b.*", r".*\B.", r"^.*b", r"[^é].*"])
def test_anchors_after_characters_of_several_bytes_are_not_the_start(full: PartKeyIndex, expression: str) -> None:
    found = full.search(matching(expression))
    # RE2's word boundary considers ASCII letters only.
    wanted = re.compile(expression, re.DOTALL | re.ASCII)
    assert found == BitMap([position for position, value in enumerate(VALUES) if wanted.fullmatch(value)])


def test_with_a_known_prefix_other_values_are_not_examined(full: PartKeyIndex) -> None:
    starting = [i for i, value in enumerate(VALUES) if value.startswith("é")]
    assert full.search(matching("é.*", prefix="é", max_terms=len(starting))) == BitMap(starting)
    with pytest.raises(RegexTooCostly):
        full.search(matching("é.*", max_terms=len(starting)))


def test_more_values_than_allowed_end_the_search(index: PartKeyIndex) -> None:
    fill(index, [f"value-{i}" for i in range(100)])
    assert index.search(matching("value-.*5", max_terms=100)) == BitMap(range(5, 100, 10))
    with pytest.raises(RegexTooCostly, match="more than 99 terms to examine") as gave_up:
        index.search(matching("value-[0-9]*5", max_terms=99))
    assert gave_up.value.examined_terms == 99


def test_more_time_than_allowed_ends_the_search(index: PartKeyIndex) -> None:
    fill(index, [f"{i:05}" + "x" * 2000 for i in range(300)])
    with pytest.raises(RegexTooCostly, match="more than 5 ms of matching") as gave_up:
        index.search(matching("(?:.?){200}.*y", max_ms=5))
    assert 0 < gave_up.value.examined_terms < 300
    assert gave_up.value.elapsed_ms > 5


def test_a_long_value_under_a_large_expression_is_given_up_before_it_starts(index: PartKeyIndex) -> None:
    fill(index, ["x" * 30_000])
    with pytest.raises(RegexTooCostly, match="a term of 30000 bytes for an expression of"):
        index.search(matching("(?:.?){1000}y"))


@pytest.mark.parametrize(
    "expression",
    [
        "((a{1000}){1000}){1000}",
        "(?:a{1000}(?i)){1000}",
        r"a{1000}\Q\E{1000}",
        "[]^{3}]{1000}(?:x{50}){50}(?:(?:y{100}){100}){100}",
        "(" * 1001 + ")" * 1001,
        "a" * 100_001,
        "(|a)" * 8000,
    ],
)
def test_an_expression_that_would_outgrow_the_heap_is_refused_at_once(expression: str) -> None:
    start_vm()
    with pytest.raises(RegexTooCostly):
        matching(expression)


def test_braces_that_are_mere_text_do_not_count_as_repetition(full: PartKeyIndex) -> None:
    for expression in (
        "[{1000}{1000}]*",
        r"\x{1000}{1000}",
        "(?:a{)+",
        r"\Q{1000}{1000}{1000}\E",
        r"(?:\{1000}){100}",
    ):
        assert full.search(matching(expression)) == BitMap()


def test_an_expression_that_outgrows_the_stack_is_an_error_and_no_crash(index: PartKeyIndex) -> None:
    fill(index, ["a"])
    outcomes: list[str] = []

    def search() -> None:
        with pytest.raises(RegexTooCostly) as gave_up:
            index.search(matching("a?" * 20_000))
        outcomes.append(str(gave_up.value))

    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=search)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert "too many optional parts in a row" in outcomes[0]
    assert index.search(matching("a")) == BitMap([0])


@pytest.mark.parametrize("expression", ["(", "a)", "[", "a**", "a{1001}", r"\C", "(?=a)", r"(a)\1", "(?z)"])
def test_an_invalid_expression_is_rejected_with_its_text(expression: str) -> None:
    start_vm()
    with pytest.raises(InvalidRegex) as invalid:
        matching(expression)
    assert "(?s)" not in str(invalid.value)


def test_the_limits_of_an_expression_do_not_affect_lucenes_cache() -> None:
    start_vm()
    # Equal queries share an entry in Lucene's cache, so that their bounds must not make them different.
    one, two = matching("b.*", max_terms=1000), matching("b.*", max_terms=1)
    assert one.equals(two)  # type: ignore[attr-defined]
    assert one.hashCode() == two.hashCode()  # type: ignore[attr-defined]
    assert not one.equals(matching("b.*", prefix="b"))  # type: ignore[attr-defined]


def test_an_expression_works_beside_other_queries(full: PartKeyIndex) -> None:
    a, ab = VALUES.index("a"), VALUES.index("ab")
    ids = part_id_in(BitMap([a, ab]))
    assert full.search(all_of([matching("a.*"), ids], but_none_of=[label_is("a", "a")])) == BitMap([ab])
    assert full.search(all_of([everything()], but_none_of=[matching("(?s).*")])) == BitMap()


def test_a_truncated_list_of_values_is_refused() -> None:
    start_vm()
    for cut in (b"\x01", b"\x02\x00a", b"\x01\x00a\x01\x00"):
        with pytest.raises(MalformedBatch, match="cut off"), java_failures():
            java().term_sets.anyOf("a", to_java(cut))
