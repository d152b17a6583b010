"""Finding keys by the values of their labels in one call gives the same keys as a query."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from strandline.index.documents import KeyList, MalformedBatch, PartKeyBatch, encode_part_key
from strandline.index.key_lookup import packed_selectors
from strandline.index.matchers import Matcher, MatchOp, RegexBudget, to_query
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.pylucene.failures import IndexClosed
from strandline.index.pylucene.queries import any_of
from strandline.index.vm import start_vm

pytestmark = pytest.mark.unit

BUDGET = RegexBudget(max_terms=1000, max_ms=60_000)
NAMES, VALUES = ["a", "b", "é", "\U0001f600"], ["1", "2", "12", "ü", "\uffff"]
# Each value of each label, alone and beside others; ids of three segments, of which some are deleted.
KEYS = [
    {name: VALUES[(position + at) % (at + 2)] for at, name in enumerate(NAMES) if position >> at & 1} | {"all": "x"}
    for position in range(48)
]
DELETED = BitMap([3, 20, 21, 40])


def matcher(label: str, value: str, op: MatchOp = MatchOp.EQUAL) -> Matcher:
    return Matcher(label, op, value)


EQUAL = st.builds(matcher, st.sampled_from([*NAMES, "all", "", "none"]), st.sampled_from([*VALUES, "x"]))
LISTS = st.builds(
    lambda label, values: matcher(label, "|".join(values), MatchOp.MATCH),
    st.sampled_from([*NAMES, "none"]),
    st.lists(st.sampled_from(["1", "2", "12", "x"]), min_size=1, max_size=3),
)
ANY = EQUAL | st.builds(
    matcher,
    st.sampled_from(NAMES),
    st.sampled_from([*VALUES, "", "1|2", "1|", "|", "1.*", "1+", "(1|2)", "ü|1", "["]),
    st.sampled_from(MatchOp),
)


def selectors_of(matchers: st.SearchStrategy[Matcher], least: int) -> st.SearchStrategy[list[list[Matcher]]]:
    return st.lists(st.lists(matchers, min_size=least, max_size=3), min_size=least, max_size=3)


def filled(folder: Path) -> PartKeyIndex:
    start_vm()
    index = PartKeyIndex.open(folder)
    for first in range(0, len(KEYS), 16):
        ids = range(first, first + 16)
        index.add(PartKeyBatch.of(ids, [(7, i) for i in ids], [encode_part_key(KEYS[i]) for i in ids]))
        index.refresh()
    index.delete(DELETED)
    index.refresh()
    return index


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PartKeyIndex]:
    with filled(tmp_path_factory.mktemp("lookup")) as index:
        yield index


def values_of(matcher: Matcher) -> list[str]:
    return [matcher.value] if matcher.op is MatchOp.EQUAL else matcher.value.split("|")


def rows(keys: KeyList | None) -> list[tuple[int, bytes]] | None:
    return None if keys is None else list(zip(keys.part_ids.tolist(), keys.part_keys(), strict=True))


def by_query(index: PartKeyIndex, selectors: Sequence[Sequence[Matcher]], most: int) -> KeyList | None:
    return index.part_keys_up_to(any_of([to_query(matchers, BUDGET) for matchers in selectors]), most)


@given(selectors=selectors_of(EQUAL | LISTS, least=1), most=st.integers(0, 50))
def test_values_find_what_a_query_finds(full: PartKeyIndex, selectors: list[list[Matcher]], most: int) -> None:
    packed = packed_selectors(selectors)
    assert packed is not None
    found = rows(full.part_keys_with_labels(packed, most))
    assert found == rows(by_query(full, selectors, most))
    expected = [
        position
        for position, labels in enumerate(KEYS)
        if position not in DELETED
        and any(all(labels.get(matcher.label) in values_of(matcher) for matcher in matchers) for matchers in selectors)
    ]
    assert found == (None if len(expected) > most else [(index, encode_part_key(KEYS[index])) for index in expected])


@given(selectors=selectors_of(ANY, least=0))
def test_only_selectors_with_values_for_each_label_are_packed(
    full: PartKeyIndex, selectors: list[list[Matcher]]
) -> None:
    packed = packed_selectors(selectors)
    matchers = list(itertools.chain.from_iterable(selectors))
    if (
        not selectors
        or not all(selectors)
        or any(matcher.is_negative or matches_no_value(matcher) for matcher in matchers)
    ):
        assert packed is None
    if packed is not None:
        assert rows(full.part_keys_with_labels(packed, 50)) == rows(by_query(full, selectors, 50))


def matches_no_value(matcher: Matcher) -> bool:
    """Whether a missing label matches, or nothing does."""
    return matcher.value in {"", "1|", "|", "["} and (matcher.op is MatchOp.MATCH or not matcher.value)


def test_texts_that_no_key_can_have_and_long_lists_are_left_to_a_query(full: PartKeyIndex) -> None:
    longest = "v" * 32_766
    packed = packed_selectors([[matcher("a", longest)]])
    assert packed is not None
    assert rows(full.part_keys_with_labels(packed, 5)) == []
    assert packed_selectors([[matcher("a", longest + "v")]]) is None
    assert packed_selectors([[matcher("l" * 70_000, "v")]]) is None
    many = [matcher("a", str(number)) for number in range(64)]
    assert packed_selectors([many]) is not None
    assert packed_selectors([many, many[:1]]) is None
    listed = "|".join(map(str, range(1000)))
    assert packed_selectors([[matcher("a", listed, MatchOp.MATCH)]]) is not None
    assert packed_selectors([[matcher("a", listed + "|1000", MatchOp.MATCH)]]) is None


def test_a_malformed_pack_is_refused(full: PartKeyIndex) -> None:
    packed = packed_selectors([[matcher("all", "x"), matcher("é", "1|2", MatchOp.MATCH)]])
    assert packed is not None
    for end in range(len(packed)):
        with pytest.raises(MalformedBatch, match="a selector is cut off"):
            full.part_keys_with_labels(packed[:end], 50)
    with pytest.raises(MalformedBatch, match="a selector has no label"):
        full.part_keys_with_labels(packed + b"\0\0", 50)
    with pytest.raises(MalformedBatch, match="a label has no value"):
        full.part_keys_with_labels(packed + b"\1\0\1\0a\0\0", 50)


@given(packed=st.binary(max_size=40))
def test_any_bytes_are_handled_safely(full: PartKeyIndex, packed: bytes) -> None:
    refused = None
    try:
        full.part_keys_with_labels(packed, 50)
    except MalformedBatch as error:
        refused = error
    assert refused is None or 0 <= refused.position <= len(packed)


def test_a_search_sees_the_last_refresh_and_no_closed_index(tmp_path: Path) -> None:
    packed = packed_selectors([[matcher("all", "new")]])
    assert packed is not None
    with filled(tmp_path) as index:
        index.add(PartKeyBatch.of([99], [(7, 99)], [encode_part_key({"all": "new"})]))
        assert rows(index.part_keys_with_labels(packed, 1)) == []
        index.refresh()
        assert rows(index.part_keys_with_labels(packed, 1)) == [(99, encode_part_key({"all": "new"}))]
        # Any number of times: each search releases what it held.
        assert all(index.part_keys_with_labels(packed, 0) is None for _ in range(100))
    with pytest.raises(IndexClosed):
        index.part_keys_with_labels(packed, 1)
