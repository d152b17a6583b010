"""A time has passed once all readings of a wall clock for a minute are beyond it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.store.settled_time import WINDOW_S, SettledTime

pytestmark = pytest.mark.unit

NOW = 1_700_000_000_000
YEAR = 365 * 86_400_000


def test_nothing_is_settled_before_two_readings_a_minute_apart() -> None:
    time = SettledTime()
    assert time.observe(NOW, 0.0) is None
    assert time.observe(NOW + 59_999, 59.999) is None
    assert time.observe(NOW + 60_000, 60.0) == NOW


def test_one_wrong_reading_settles_nothing() -> None:
    for wrong_at in range(1, 8):
        time = SettledTime()
        for number in range(10):
            ahead = YEAR if number == wrong_at else 0
            settled = time.observe(NOW + number * 30_000 + ahead, number * 30.0)
            assert settled is None or settled <= NOW + number * 30_000, f"reading {wrong_at} was accepted"


def test_the_first_reading_may_be_the_wrong_one() -> None:
    time = SettledTime()
    time.observe(NOW + YEAR, 0.0)
    assert time.observe(NOW + 60_000, 60.0) == NOW + 60_000


def test_a_clock_that_was_set_back_is_followed_at_once() -> None:
    time = SettledTime()
    time.observe(NOW, 0.0)
    time.observe(NOW + 60_000, 60.0)
    assert time.observe(NOW - YEAR, 61.0) == NOW - YEAR


@given(st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 100)), min_size=1, max_size=30))
def test_every_reading_of_a_minute_is_beyond_the_settled_time(steps: list[tuple[int, float]]) -> None:
    time, monotonic = SettledTime(), 0.0
    readings: list[tuple[float, int]] = []
    for reading, passed in steps:
        monotonic += passed
        readings.append((monotonic, reading))
        settled = time.observe(reading, monotonic)
        if settled is not None:
            latest = [earlier for at, earlier in readings if at > monotonic - WINDOW_S]
            assert all(earlier >= settled for earlier in latest), "a reading within the last minute was not beyond it"
            assert any(at <= monotonic - WINDOW_S and earlier >= settled for at, earlier in readings)
