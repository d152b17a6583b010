"""The span of the columns: the bounds of all keys' times without reading each."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.part_columns import ABSENT, LIVE, NO_KEYS, PartColumns, PartRows

pytestmark = pytest.mark.unit

NONE = np.zeros(0, dtype=np.uint64)


def begun(first_id: int, starts: list[int]) -> PartRows:
    count = len(starts)
    rows = PartRows.new_keys(np.arange(first_id, first_id + count, dtype=np.uint32), *(np.zeros(count, np.uint64),) * 3)
    rows.start[:] = starts
    rows.last[:] = starts
    return rows


def test_without_a_key_every_range_has_all_of_them() -> None:
    assert PartColumns().span() == NO_KEYS
    assert NO_KEYS.lies_in(5, 5)


def test_the_span_is_not_cached_while_a_key_has_no_sample() -> None:
    columns = PartColumns()
    columns.append(begun(0, [LIVE]))
    assert not columns.span().lies_in(0, LIVE - 1)
    columns.rows.start[0] = 7
    assert columns.span().last_start == 7


def test_a_key_that_ends_after_the_span_was_computed_counts() -> None:
    columns = PartColumns()
    columns.append(begun(0, [5, 9]))
    assert (columns.span().last_start, columns.span().first_end) == (9, LIVE)
    columns.rows.last[:] = [50, 60]
    columns.end(np.array([True, False]))
    assert columns.span().first_end == 50


def test_purged_keys_do_not_count_once_the_span_is_computed_again() -> None:
    columns = PartColumns()
    columns.append(begun(0, [5, 9, 8]))
    columns.rows.last[:] = [6, 60, 70]
    columns.end(np.array([True, True, False]))
    columns.remove(np.array([0]))
    span = columns.span()
    assert (span.last_start, span.first_end) == (9, 60)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("come"), st.lists(st.integers(0, 50), min_size=1, max_size=4)),
            st.tuples(st.just("sample"), st.integers(0, 99)),
            st.tuples(st.just("end"), st.integers(0, 99)),
            st.tuples(st.just("forget"), st.integers(0, 99)),
            st.tuples(st.just("look"), st.none()),
        ),
        max_size=30,
    ),
    st.integers(0, 60),
    st.integers(0, 60),
)
def test_if_the_span_is_in_a_range_every_key_existed_then(
    steps: list[tuple[str, object]], first: int, length: int
) -> None:
    columns = PartColumns()
    next_id = 0
    for step, what in steps:
        if isinstance(what, list):
            columns.append(begun(next_id, what))
            next_id += len(what)
        elif step == "look":
            columns.span()
        elif isinstance(what, int) and len(columns):
            row = what % len(columns)
            rows = columns.rows
            if rows.end[row] == ABSENT:
                continue
            match step:
                case "sample":
                    rows.start[row], rows.last[row] = min(rows.start[row], what), max(rows.last[row], what)
                    rows.end[row] = LIVE
                case "end":
                    columns.end(np.arange(len(columns)) == row)
                case "forget":
                    columns.remove(np.array([row]))
    rows = columns.rows
    existed = (rows.start <= first + length) & (rows.end >= first)
    if columns.span().lies_in(first, first + length):
        assert existed[rows.present()].all()
    exact = PartColumns(rows).span()
    if existed[rows.present()].all():
        assert exact.lies_in(first, first + length)


@given(st.sets(st.integers(0, 60), max_size=40), st.sampled_from([0, 5, 2**32 - 70]))
def test_a_single_id_has_the_same_row_as_among_many(some: set[int], first: int) -> None:
    ids = np.array(sorted(first + offset for offset in some), dtype=np.uint32)
    rows = PartRows.new_keys(ids, *(np.zeros(len(ids), np.uint64),) * 3)
    wanted = np.arange(max(0, first - 3), first + 65, dtype=np.uint32)
    assert [rows.row_of(part_id) for part_id in wanted.tolist()] == rows.rows_of(wanted).tolist()
