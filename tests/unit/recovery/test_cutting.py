"""Where buckets end."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.recovery.cutting import NO_TIME, Cutting, PinnedEnd

pytestmark = pytest.mark.unit

HOUR, GRACE = 3_600_000, 30_000
CUTTING = Cutting(HOUR, GRACE)
DEADLINE = 101 * HOUR + GRACE  # Of bucket 100.


def cut_position(*times: int, bucket: int = 100, present: int = 2**63) -> int | None:
    return CUTTING.index_of_cut(bucket, np.array(times, dtype=np.int64), present)


def test_a_bucket_ends_the_grace_after_its_last_hour() -> None:
    assert CUTTING.deadline(100) == DEADLINE
    assert CUTTING.deadline(-1) == GRACE
    assert CUTTING.deadline(-2) == GRACE - HOUR


@pytest.mark.parametrize(
    ("time", "bucket"),
    [(DEADLINE - 1, 100), (DEADLINE, 101), (GRACE, 0), (GRACE - 1, -1), (0, -1), (GRACE - HOUR - 1, -2)],
)
def test_a_record_falls_into_the_bucket_whose_deadline_it_is_before(time: int, bucket: int) -> None:
    assert CUTTING.bucket_of(time) == bucket


@given(st.integers(-(2**62), 2**62), st.sampled_from([1_000, HOUR // 4, HOUR, 24 * HOUR]), st.integers(0, 999))
def test_a_record_closes_the_bucket_before_its_own_and_not_its_own(time: int, interval: int, grace: int) -> None:
    cutting = Cutting(interval, grace)
    bucket = cutting.bucket_of(time)
    assert cutting.deadline(bucket - 1) <= time < cutting.deadline(bucket)
    times = np.array([time], dtype=np.int64)
    assert cutting.index_of_cut(bucket, times, present=2**63) is None
    assert cutting.index_of_cut(bucket - 1, times, present=2**63) == 0


def test_the_cut_is_at_the_first_record_that_is_not_before_the_deadline() -> None:
    assert cut_position(DEADLINE - 1) is None
    assert cut_position(DEADLINE) == 0
    assert cut_position(DEADLINE - 2, DEADLINE - 1, DEADLINE, DEADLINE + 1) == 2
    assert cut_position(DEADLINE - 1, DEADLINE + 50 * HOUR) == 1


def test_a_record_after_the_cut_may_have_an_earlier_time() -> None:
    assert cut_position(0, DEADLINE, DEADLINE - HOUR, DEADLINE) == 1


def test_without_a_record_there_is_no_cut() -> None:
    assert cut_position() is None


def test_the_lowest_and_highest_times_are_compared_correctly() -> None:
    assert cut_position(-(2**63)) is None
    assert cut_position(2**63 - 1) == 0
    assert cut_position(2**63 - 1, bucket=2**62) is None, "its deadline is after the highest time"


def test_a_record_closes_nothing_before_the_present_has_reached_the_deadline() -> None:
    assert cut_position(DEADLINE, DEADLINE + 8 * HOUR, present=DEADLINE - 1) is None
    assert cut_position(DEADLINE, present=DEADLINE) == 0


def test_a_record_ahead_of_the_present_leaves_the_bucket_open_for_later_records() -> None:
    """A broker's clock was hours ahead for a while, and another leader has appended records of the bucket since."""
    assert cut_position(DEADLINE + 8 * HOUR, DEADLINE - 5, DEADLINE + 1, present=DEADLINE + 2) == 2
    assert cut_position(DEADLINE + 8 * HOUR, present=DEADLINE + 2) is None
    assert cut_position(DEADLINE + 2 + GRACE, present=DEADLINE + 2) == 0, "clocks may differ by the grace"
    assert cut_position(DEADLINE + 3 + GRACE, present=DEADLINE + 2) is None


def test_a_record_without_a_time_closes_nothing() -> None:
    assert cut_position(NO_TIME, NO_TIME) is None
    assert cut_position(NO_TIME, DEADLINE) == 1


def test_a_record_closes_several_buckets_only_as_far_as_the_present() -> None:
    following = DEADLINE + HOUR
    assert CUTTING.closes_several(100, following, following)
    assert not CUTTING.closes_several(100, following + 8 * HOUR, following - 1)
    assert not CUTTING.closes_several(100, following - 1, following + HOUR)


def test_a_bucket_is_overdue_a_grace_after_its_deadline() -> None:
    assert not CUTTING.is_overdue(100, DEADLINE + GRACE - 1)
    assert CUTTING.is_overdue(100, DEADLINE + GRACE)


def test_a_bucket_ends_at_the_pinned_end_if_it_was_overdue_when_the_end_was_requested() -> None:
    assert CUTTING.ends_at(100, PinnedEnd(500, DEADLINE + GRACE))
    assert not CUTTING.ends_at(101, PinnedEnd(500, DEADLINE + GRACE))
