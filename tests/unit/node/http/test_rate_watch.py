"""The minimum rate of a transfer."""

import pytest

from strandline.node.http.rate_watch import RateWatch

pytestmark = pytest.mark.unit


def test_no_rate_is_too_low_before_the_window_ends() -> None:
    watch = RateWatch(100, 10.0)
    watch.start(5.0, 0)
    assert not watch.is_too_slow(14.9, 0)


@pytest.mark.parametrize(("passed", "too_slow"), [(999, True), (1000, False), (5000, False)])
def test_the_rate_is_that_of_the_window(passed: int, *, too_slow: bool) -> None:
    watch = RateWatch(100, 10.0)
    watch.start(0.0, 7)
    assert watch.is_too_slow(10.0, 7 + passed) is too_slow


def test_a_fast_window_does_not_make_up_for_a_slow_one() -> None:
    watch = RateWatch(100, 10.0)
    watch.start(0.0, 0)
    assert not watch.is_too_slow(10.0, 1_000_000)
    assert watch.is_too_slow(20.0, 1_000_500)


def test_a_window_that_is_checked_late_needs_more_bytes() -> None:
    watch = RateWatch(100, 10.0)
    watch.start(0.0, 0)
    assert watch.is_too_slow(20.0, 1500)
