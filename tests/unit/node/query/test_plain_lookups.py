"""Look-ups by values of labels on the link: they come out as they went in, and whatever else comes is refused."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.key_lookup import packed_selectors, packed_values, unpacked_selectors
from strandline.index.matchers import Matcher, MatchOp
from strandline.node.query.asks import LABEL_NAMES, LABEL_VALUES, SERIES, LabelNamesAsk, LabelValuesAsk, SeriesAsk
from strandline.node.query.frames import FrameDamaged, is_plain
from strandline.node.query.plain_lookups import (
    FewJson,
    PlainLookup,
    answer_frame,
    answer_in,
    lookup_of,
)
from strandline.time_range import TimeRange

pytestmark = pytest.mark.unit

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=5)
VALUES = st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4)
TIMES = st.integers(-(2**53), 2**53)
LOOKUPS = st.builds(
    PlainLookup.about,
    st.sampled_from([SERIES, LABEL_NAMES, LABEL_VALUES]),
    TEXTS,
    st.integers(0, 2**31 - 1),
    st.one_of(st.none(), st.tuples(TIMES, TIMES).map(lambda pair: (min(pair), max(pair)))),
    VALUES.map(packed_values),
)
LOOKUP = PlainLookup.about(LABEL_VALUES, "job", 7, (1, 2), packed_values([("a", "b"), ("c", "d")]))


@given(LOOKUPS, st.floats(0, 1e6))
def test_a_look_up_crosses_the_link(lookup: PlainLookup, seconds: float) -> None:
    frame = lookup.frame(seconds)
    assert is_plain(frame)
    assert lookup_of(frame) == (lookup, seconds)


@given(VALUES)
def test_values_are_packed_as_selectors_are_and_come_back(values: list[tuple[str, str]]) -> None:
    packed = packed_values(values)
    assert packed == packed_selectors([[Matcher(label, MatchOp.EQUAL, value) for label, value in values]])
    assert unpacked_selectors(packed + packed) == [values, values]


def test_it_asks_for_what_any_number_of_series_may_answer() -> None:
    selector = (Matcher("a", MatchOp.EQUAL, "b"), Matcher("c", MatchOp.EQUAL, "d"))
    assert LOOKUP.ask() == LabelValuesAsk("job", (selector,), TimeRange(1, 2), 7)
    always = PlainLookup.about(LABEL_NAMES, "", 7, None, LOOKUP.selectors)
    assert always.ask() == LabelNamesAsk((selector,), None, 7)
    assert PlainLookup.about(SERIES, "", 7, None, LOOKUP.selectors).ask() == SeriesAsk((selector,), None, 7)


def test_more_results_than_java_counts_are_as_many_as_it_does() -> None:
    lookup, _ = lookup_of(PlainLookup.about(SERIES, "", 2**40, None, LOOKUP.selectors).frame(1))
    assert lookup.limit == 2**31 - 1


@pytest.mark.parametrize("cut", range(4, len(LOOKUP.frame(1))))
def test_one_that_is_cut_off_is_refused(cut: int) -> None:
    with pytest.raises(FrameDamaged):
        lookup_of(LOOKUP.frame(1)[:cut])


@pytest.mark.parametrize(
    ("place", "form", "value"),
    [(4, "<I", 1), (8, "<Q", 2**60), (16, "<B", 3), (33, "<d", -1.0), (33, "<d", float("nan")), (45, "<H", 60_000)],
)
def test_numbers_that_make_no_sense_are_refused(place: int, form: str, value: float) -> None:
    frame = bytearray(LOOKUP.frame(1))
    struct.pack_into(form, frame, place, value)
    with pytest.raises(FrameDamaged):
        lookup_of(bytes(frame))


@pytest.mark.parametrize(
    "selectors",
    [
        b"",
        b"\0\0",
        packed_values([("a", "b")])[:-1],
        packed_values([("a", "b")]) + b"\1",
        b"\1\0\1\0a\0\0",
        b"\1\0\1\0a\2\0\1\0b\1\0c",
        b"\1\0\1\0a\1\0\0\0",
        b"\1\0\1\0\xff\1\0\1\0b",
    ],
)
def test_selectors_that_are_none_are_refused(selectors: bytes) -> None:
    with pytest.raises(FrameDamaged, match="no sound selectors"):
        PlainLookup.about(SERIES, "", 1, None, selectors).ask()


@given(st.integers(0, 20), st.binary(max_size=20))
def test_an_answer_crosses_the_link(series: int, text: bytes) -> None:
    frame = answer_frame(FewJson(series, text))
    assert is_plain(frame)
    assert answer_in(frame) == FewJson(series, text)
    for other in (frame[:-1], frame + b"x"):
        with pytest.raises(FrameDamaged):
            answer_in(other)
