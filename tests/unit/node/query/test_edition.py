"""The page on which a shard tells of which edition its lists are."""

import os
from collections.abc import Iterator

import pytest

from strandline.index.part_columns import Span
from strandline.node.query.edition import Edition, EditionPage, EditionReader, joined
from strandline.time_range import TimeRange

pytestmark = pytest.mark.unit

SPAN = Span(2, 100, 200)


@pytest.fixture
def page() -> Iterator[EditionPage]:
    made = EditionPage()
    yield made
    made.close()


@pytest.fixture
def reader(page: EditionPage) -> Iterator[EditionReader]:
    made = EditionReader(os.dup(page.file))
    yield made
    made.close()


def test_lists_that_are_called_otherwise_are_another_edition(page: EditionPage, reader: EditionReader) -> None:
    seen = []
    for lists in ("a", "a", "b", "a"):
        page.tell(lists, SPAN)
        edition = reader.read()
        assert edition is not None
        seen.append(edition.numbers)
    assert seen[0] == seen[1]
    assert len({seen[0], seen[2], seen[3]}) == 3, "an edition that is over never comes again"


def test_another_span_is_told_of_the_same_edition(page: EditionPage, reader: EditionReader) -> None:
    page.tell("a", SPAN)
    before = reader.read()
    page.tell("a", Span(3, 150, 180))
    after = reader.read()
    assert before is not None
    assert after == Edition(before.numbers, 150, 180)


def test_before_the_first_word_and_after_a_withdrawal_nothing_is_known(
    page: EditionPage, reader: EditionReader
) -> None:
    assert reader.read() is None
    page.tell(None, SPAN)
    assert reader.read() is None
    page.tell("a", SPAN)
    page.tell(None, SPAN)
    assert reader.read() is None


def test_what_is_half_written_is_not_believed(page: EditionPage, reader: EditionReader) -> None:
    page.tell("a", SPAN)
    first = os.pread(page.file, 32, 0)
    page.tell("b", Span(2, 300, 400))
    second = os.pread(page.file, 32, 0)
    for place in (8, 16, 24):
        os.pwrite(page.file, second[:place] + first[place:], 0)
        assert reader.read() is None
    os.pwrite(page.file, second, 0)
    assert reader.read() is not None


def test_a_page_that_was_closed_meanwhile_says_nothing(page: EditionPage) -> None:
    reader = EditionReader(os.dup(page.file))
    page.tell("a", SPAN)
    reader.close()
    assert reader.read() is None


@pytest.mark.parametrize(
    ("first", "last", "holds"),
    [(0, 100, True), (0, 99, False), (200, 300, True), (201, 300, False), (150, 160, True), (100, 100, True)],
)
def test_an_edition_holds_for_ranges_in_which_all_series_were_there(first: int, last: int, holds: bool) -> None:
    edition = Edition((1,), SPAN.last_start, SPAN.first_end)
    assert edition.holds_for(TimeRange(first, last)) is holds
    assert SPAN.lies_in(first, last) is holds
    assert edition.holds_for(None)


def test_several_shards_hold_where_each_of_them_does() -> None:
    assert joined([Edition((1,), 100, 200), Edition((7,), 50, 150)]) == Edition((1, 7), 100, 150)
