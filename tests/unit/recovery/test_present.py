"""The present: the time that at least two clocks have reached."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.clock import ManualClock
from strandline.recovery.present import ClockReadings, Present, SteadyClock

pytestmark = pytest.mark.unit

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
NOW = 1_800_000_000_000
TIMES = st.integers(NOW - 1000 * DAY, NOW + 1000 * DAY)


class LeapingClock(ManualClock):
    """Wall time may jump; monotonic time advances steadily."""

    offset = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.offset


def test_without_a_server_of_the_store_the_present_is_the_local_clock() -> None:
    assert ClockReadings(NOW).present == NOW
    assert ClockReadings(NOW, None, NOW + HOUR).present == NOW


@given(own=TIMES, store=TIMES, broker=st.one_of(st.none(), TIMES))
def test_the_present_is_a_time_that_two_clocks_have_reached_and_no_later_one_is(
    own: int, store: int, broker: int | None
) -> None:
    present = ClockReadings(own, store, broker).present
    clocks = [clock for clock in (own, store, broker) if clock is not None]
    assert sum(clock >= present for clock in clocks) >= 2
    assert sum(clock >= present + 1 for clock in clocks) < 2


@given(wrong=TIMES, which=st.integers(0, 2))
def test_one_wrong_clock_moves_the_present_nowhere_while_the_others_agree(wrong: int, which: int) -> None:
    clocks = [NOW, NOW, NOW]
    clocks[which] = wrong
    assert ClockReadings(*clocks).present == NOW


def test_the_clock_that_is_furthest_off_is_the_disagreement() -> None:
    assert ClockReadings(NOW, NOW, NOW).disagreement == 0
    assert ClockReadings(NOW + HOUR, NOW, NOW).disagreement == HOUR
    assert ClockReadings(NOW, NOW - DAY, NOW).disagreement == -DAY
    assert ClockReadings(NOW, NOW, NOW + 8 * HOUR).disagreement == 8 * HOUR


def test_old_records_are_no_disagreement() -> None:
    assert ClockReadings(NOW, NOW, NOW - DAY).disagreement == 0


def test_a_manifest_that_was_written_later_than_now_is_reported_and_decides_nothing() -> None:
    clock = ManualClock(NOW)
    present = Present(clock, clock.now_ms)
    present.poll_store_clock()
    present.observe_manifest(NOW - DAY)
    assert present.readings().differences["manifest"] == 0
    present.observe_manifest(NOW + DAY)
    assert present.readings().disagreement == DAY
    assert present.now_ms() == NOW


def test_between_two_polls_the_store_s_clock_advances() -> None:
    clock, requests = ManualClock(NOW), 0

    def server_time() -> int:
        nonlocal requests
        requests += 1
        return clock.now_ms() - 5_000

    present = Present(clock, server_time)
    present.poll_store_clock()
    clock.sleep(20)
    present.poll_store_clock()
    assert requests == 1
    assert present.now_ms() == NOW + 15_000
    clock.sleep(20)
    present.poll_store_clock()
    assert requests == 2


def test_a_server_that_takes_long_to_answer_is_not_ahead_by_that() -> None:
    """It may have read its clock at the end of that time."""
    clock = ManualClock(NOW)

    def server_time() -> int:
        clock.sleep(40)
        return clock.now_ms()

    present = Present(clock, server_time)
    present.poll_store_clock()
    assert present.readings().store == NOW + 40_000


def test_records_count_as_long_as_they_are_the_newest_that_were_read() -> None:
    clock = ManualClock(NOW)
    present = Present(clock, lambda: clock.now_ms() - DAY)
    present.poll_store_clock()
    assert present.now_ms() == NOW - DAY, "two clocks disagree, and there is no third"
    present.observe_records(NOW - 1_000)
    assert present.now_ms() == NOW - 1_000
    clock.sleep(10)
    assert present.now_ms() == NOW + 9_000, "the brokers' clock has advanced since"
    present.observe_records(-1)
    assert present.now_ms() == NOW + 9_000, "a record without a time has no effect"
    present.observe_records(NOW - 2 * DAY)
    assert present.now_ms() == NOW - DAY + 10_000


def test_nothing_has_expired_before_the_present_was_looked_at_twice_a_minute_apart() -> None:
    clock = ManualClock(NOW)
    present = Present(clock, lambda: None)
    assert present.settled_ms() == 0
    clock.sleep(59)
    assert present.settled_ms() == 0
    clock.sleep(1)
    assert present.settled_ms() == NOW


def test_one_wrong_reading_settles_nothing() -> None:
    clock = LeapingClock(NOW)
    present = Present(clock, clock.now_ms)
    present.poll_store_clock()
    for second in range(0, 300, 10):
        clock.sleep(10)
        clock.offset = 100 * DAY if second == 120 else 0
        present.poll_store_clock()
        assert present.settled_ms() <= clock.now_ms() - clock.offset


def test_a_jump_is_ignored_until_it_has_lasted_for_ten_minutes() -> None:
    clock = LeapingClock(NOW)
    steady = SteadyClock(clock)
    clock.offset = 3 * HOUR
    for minute in range(1, 11):
        assert steady.now_ms() == NOW + (minute - 1) * MINUTE
        clock.sleep(60)
    assert steady.now_ms() == NOW + 10 * MINUTE + 3 * HOUR


def test_a_jump_that_is_reversed_leaves_the_clock_unchanged() -> None:
    clock = LeapingClock(NOW)
    steady = SteadyClock(clock)
    for offset in (3 * HOUR, 0, -DAY, 0):
        clock.offset = offset
        assert steady.now_ms() == clock.now_ms() - clock.offset
        clock.sleep(5)
    assert steady.now_ms() == clock.now_ms()


def test_a_clock_that_is_corrected_a_little_is_followed_at_once() -> None:
    clock = LeapingClock(NOW)
    steady = SteadyClock(clock)
    for offset in (30_000, 10_000, -20_000):
        clock.offset = offset
        clock.sleep(1)
        assert steady.now_ms() == clock.now_ms()
