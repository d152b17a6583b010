"""Late samples are counted by hour, and beyond 64 hours in ranges that don't depend on the order of counting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.store.late_samples import HOUR, MAX_COUNTS, late_samples, merged_late
from strandline.store.rows import LateSamples

pytestmark = pytest.mark.unit

BUCKET = 500_000
TEN_YEARS = 10 * 8_766

hours = st.one_of(
    st.integers(BUCKET - 100, BUCKET + 3), st.integers(BUCKET - TEN_YEARS, BUCKET), st.integers(-(2**41), 2**41)
)


def late(times: list[int]) -> tuple[LateSamples, ...]:
    return late_samples(np.array(times, dtype=np.int64), BUCKET, HOUR)


def by_hours(some: list[int]) -> tuple[LateSamples, ...]:
    return late([hour * HOUR + 5 for hour in some])


def test_up_to_64_hours_are_counted_separately() -> None:
    some = list(range(BUCKET - 640, BUCKET, 10))
    assert len(some) == MAX_COUNTS
    assert by_hours(some) == tuple(LateSamples(hour, 1) for hour in some)


def test_beyond_64_hours_the_newest_32_are_counted_separately_and_the_others_in_ranges() -> None:
    some = list(range(BUCKET - 65, BUCKET))
    found = by_hours(some)
    assert found[-32:] == tuple(LateSamples(hour, 1) for hour in some[-32:])
    assert all(late_hours.hours == 2 and late_hours.hour % 2 == 0 for late_hours in found[:-32])
    assert sum(late_hours.samples for late_hours in found) == 65


def test_ten_years_of_hours_are_64_counts() -> None:
    found = by_hours(list(range(BUCKET - TEN_YEARS, BUCKET)))
    assert len(found) <= MAX_COUNTS
    assert sum(late_hours.samples for late_hours in found) == TEN_YEARS
    assert found[0].hours == 4_096


@given(st.lists(hours, max_size=300))
def test_counts_are_few_cover_every_late_hour_and_lose_no_sample(some: list[int]) -> None:
    found, were_late = by_hours(some), [hour for hour in some if hour < BUCKET]
    assert len(found) <= MAX_COUNTS
    assert sum(late_hours.samples for late_hours in found) == len(were_late)
    for hour in were_late:
        assert any(late_hours.hour <= hour < late_hours.hour + late_hours.hours for late_hours in found)
    assert list(found) == sorted(found, key=lambda late_hours: late_hours.hour)
    for late_hours in found:
        count = sum(late_hours.hour <= hour < late_hours.hour + late_hours.hours for hour in were_late)
        assert late_hours.samples <= count if late_hours.hours > 1 else late_hours.samples == count


@given(st.lists(st.lists(hours, max_size=150), max_size=6), st.randoms(use_true_random=False))
def test_separate_counts_merge_to_the_same_as_one_count(parts: list[list[int]], rng: object) -> None:
    whole = by_hours([hour for part in parts for hour in part])
    counted = [by_hours(part) for part in parts]
    assert merged_late(late_hours for part in counted for late_hours in part) == whole
    rng.shuffle(counted)  # type: ignore[attr-defined]
    folded: tuple[LateSamples, ...] = ()
    for part in counted:
        folded = merged_late((*folded, *part))
    assert folded == whole


def test_merging_merged_counts_changes_nothing() -> None:
    found = by_hours(list(range(BUCKET - TEN_YEARS, BUCKET, 7)))
    assert merged_late(found) == found
    assert merged_late(()) == ()
