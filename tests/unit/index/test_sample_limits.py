"""Samples whose time is too far from their record's."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.sample_limits import Kept, SampleLimits, keep_timely
from strandline.wire.columns import Columns
from support.records import decoded

pytestmark = pytest.mark.unit

LEAST, GREATEST = -(2**63), 2**63 - 1
NOTHING = decoded([])

Rows = Sequence[tuple[int, Sequence[int]]]


def columns_of(rows: Rows) -> Columns:
    """Series rows: which record each is of, and its sample times. A sample's value is its position."""
    times = [time for _, some in rows for time in some]
    return replace(
        NOTHING,
        record=np.array([record for record, _ in rows], dtype=np.int32),
        first_sample=np.cumsum([0, *(len(some) for _, some in rows)], dtype=np.int64),
        time=np.array(times, dtype=np.int64),
        value=np.arange(len(times), dtype=np.float64),
    )


def keep(
    rows: Rows,
    record_times: Sequence[int],
    *,
    behind: int | None,
    ahead: int | None,
    checked: Sequence[bool] | None = None,
) -> Kept:
    """Without `checked`, the times of no record were checked."""
    marks = np.array(checked if checked is not None else [False] * len(record_times))
    return keep_timely(columns_of(rows), np.array(record_times, dtype=np.int64), marks, SampleLimits(behind, ahead))


def rows_of(columns: Columns) -> list[list[tuple[int, float]]]:
    samples = list(zip(columns.time.tolist(), columns.value.tolist(), strict=True))
    return [samples[start:end] for start, end in pairwise(columns.first_sample.tolist())]


def test_a_sample_at_a_limit_is_kept_and_one_past_it_is_not() -> None:
    kept = keep([(0, [899, 900, 1000, 1050, 1051])], [1000], behind=100, ahead=50)
    assert rows_of(kept.columns) == [[(900, 1.0), (1000, 2.0), (1050, 3.0)]]
    assert (kept.too_old, kept.too_far_ahead) == (1, 1)


def test_a_limit_of_zero_keeps_only_the_records_own_time() -> None:
    kept = keep([(0, [999, 1000, 1001])], [1000], behind=0, ahead=0)
    assert kept.columns.time.tolist() == [1000]


def test_each_sample_is_compared_with_its_own_record() -> None:
    kept = keep([(0, [1000]), (1, [1000]), (2, [1000]), (1, [5000])], [1000, 5000, 200], behind=500, ahead=500)
    assert rows_of(kept.columns) == [[(1000, 0.0)], [], [], [(5000, 3.0)]]
    assert (kept.too_old, kept.too_far_ahead) == (1, 1)


def test_a_series_keeps_its_row_although_all_its_samples_were_dropped() -> None:
    kept = keep([(0, [1, 2]), (0, []), (0, [1000])], [1000], behind=10, ahead=10)
    assert rows_of(kept.columns) == [[], [], [(1000, 2.0)]]
    assert len(kept.columns.record) == 3


def test_records_whose_times_were_checked_and_records_without_a_time_lose_nothing() -> None:
    rows = [(0, [1, 9000]), (1, [1, 9000]), (2, [1, 9000]), (3, [1, 1000, 9000])]
    kept = keep(rows, [1000, 1000, -1, 1000], behind=10, ahead=10, checked=[True, False, False, False])
    assert [[time for time, _ in row] for row in rows_of(kept.columns)] == [[1, 9000], [], [1, 9000], [1000]]
    assert (kept.too_old, kept.too_far_ahead) == (2, 2)


def test_if_no_sample_is_dropped_nothing_is_copied() -> None:
    columns = columns_of([(0, [1000])])
    kept = keep_timely(columns, np.array([1000]), np.array([False]), SampleLimits(10, 10))
    assert kept.columns is columns


def test_decoded_columns_are_not_changed() -> None:
    columns = columns_of([(0, [1, 1000])])
    keep_timely(columns, np.array([1000]), np.array([False]), SampleLimits(10, 10))
    assert columns.time.tolist() == [1, 1000]
    assert columns.first_sample.tolist() == [0, 2]


def test_without_a_limit_times_may_be_as_far_away_as_their_type_permits() -> None:
    rows = [(0, [LEAST + 1, -1, 0, GREATEST - 1])]
    for limits in ((None, None), (None, GREATEST), (GREATEST, None), (None, 10**30), (10**30, None)):
        kept = keep(rows, [0], behind=limits[0], ahead=limits[1])
        assert (kept.too_old, kept.too_far_ahead) == (0, 0), limits


def test_the_limits_are_independent() -> None:
    assert keep([(0, [LEAST + 1])], [10**12], behind=None, ahead=600_000).too_old == 0
    assert keep([(0, [GREATEST - 1])], [10**12], behind=600_000, ahead=None).too_far_ahead == 0


def test_limits_that_reach_past_all_times_keep_what_lies_within() -> None:
    year_2026 = 1_790_000_000_000
    kept = keep([(0, [year_2026 - 1, year_2026, year_2026 + 1])], [year_2026], behind=GREATEST, ahead=GREATEST)
    assert (kept.too_old, kept.too_far_ahead) == (0, 0)
    near_the_end = [GREATEST - 5, GREATEST]
    kept = keep([(record, [5, GREATEST - 5]) for record in range(2)], near_the_end, behind=10, ahead=10)
    assert [[time for time, _ in row] for row in rows_of(kept.columns)] == [[GREATEST - 5], [GREATEST - 5]]


@pytest.mark.parametrize("limit", [None, 10, GREATEST])
@pytest.mark.parametrize("checked", [False, True])
def test_the_two_numbers_that_the_index_reserves_are_not_sample_times(limit: int | None, *, checked: bool) -> None:
    kept = keep([(0, [LEAST, GREATEST, 5])], [5], behind=limit, ahead=limit, checked=[checked])
    assert kept.columns.time.tolist() == [5]
    assert (kept.too_old, kept.too_far_ahead) == (1, 1)


# Close to one another, close to the lowest and highest times, and anywhere.
TIMES = st.one_of(
    st.integers(-20, 20),
    st.integers(LEAST, LEAST + 20),
    st.integers(GREATEST - 20, GREATEST),
    st.integers(LEAST, GREATEST),
)
LIMITS = st.one_of(st.none(), st.integers(0, 20), st.integers(2**61, GREATEST), st.integers(0, GREATEST))


@st.composite
def batches(draw: st.DrawFn) -> tuple[Rows, list[int], list[bool]]:
    record_times = draw(st.lists(TIMES, min_size=1, max_size=3))
    checked = draw(st.lists(st.booleans(), min_size=len(record_times), max_size=len(record_times)))
    record = st.integers(0, len(record_times) - 1)
    rows = draw(st.lists(st.tuples(record, st.lists(TIMES, max_size=4)), max_size=5))
    return rows, record_times, checked


def exceeds(distance: int, limit: int | None) -> bool:
    # A limit as large as that has no effect.
    return limit is not None and limit < GREATEST and distance > limit


@given(batches(), LIMITS, LIMITS)
def test_the_same_samples_are_kept_as_by_a_simple_comparison(
    batch: tuple[Rows, list[int], list[bool]], behind: int | None, ahead: int | None
) -> None:
    rows, record_times, checked = batch
    expected: list[list[tuple[int, float]]] = []
    old = far = position = 0
    for record, times in rows:
        expected.append([])
        for time in times:
            is_compared = not checked[record] and record_times[record] >= 0
            too_old = time == LEAST or (is_compared and exceeds(record_times[record] - time, behind))
            too_far = time == GREATEST or (is_compared and exceeds(time - record_times[record], ahead))
            old += too_old
            far += too_far
            if not too_old and not too_far:
                expected[-1].append((time, float(position)))
            position += 1
    kept = keep(rows, record_times, behind=behind, ahead=ahead, checked=checked)
    assert rows_of(kept.columns) == expected
    assert (kept.too_old, kept.too_far_ahead) == (old, far)
