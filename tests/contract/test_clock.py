"""The contract of `Clock`, for the machine's clock and the manual clock of tests."""

import pytest

from strandline.clock import Clock, ManualClock, SystemClock, wait_until

pytestmark = pytest.mark.contract


@pytest.fixture(params=[SystemClock, ManualClock])
def clock(request: pytest.FixtureRequest) -> Clock:
    return request.param()


def test_a_sleep_is_never_shorter_than_requested(clock: Clock) -> None:
    for seconds in (0.0001, 0.003, 0.0200001):
        began = clock.monotonic()
        clock.sleep(seconds)
        assert clock.monotonic() - began >= seconds


def test_a_sleep_of_zero_or_less_returns(clock: Clock) -> None:
    began = clock.monotonic()
    clock.sleep(0)
    clock.sleep(-5)
    assert clock.monotonic() >= began


def test_wall_time_moves_with_a_sleep(clock: Clock) -> None:
    began = clock.now_ms()
    clock.sleep(0.01)
    assert clock.now_ms() >= began + 9


def test_waiting_ends_as_soon_as_the_condition_holds(clock: Clock) -> None:
    answers = iter([False, False, True])
    assert wait_until(lambda: next(answers), timeout=60, clock=clock, poll=0.001)


def test_waiting_gives_up_after_the_time_out_but_tries_at_least_once(clock: Clock) -> None:
    tries = []
    began = clock.monotonic()
    assert not wait_until(lambda: bool(tries.append(1)), timeout=0.01, clock=clock, poll=0.003)
    assert clock.monotonic() - began >= 0.01
    assert len(tries) >= 2
    assert wait_until(lambda: True, timeout=0, clock=clock)
