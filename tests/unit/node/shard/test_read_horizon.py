"""The time up to which a log is read."""

import pytest

from strandline.clock import ManualClock
from strandline.node.shard.ends_watch import EndsSnapshot
from strandline.node.shard.log import LogEnds
from strandline.node.shard.read_horizon import OpenTransaction, ReadHorizon

pytestmark = pytest.mark.unit


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def snapshot(clock: ManualClock, high: int, last_stable: int | None = None) -> EndsSnapshot:
    stable = high if last_stable is None else last_stable
    return EndsSnapshot(LogEnds(0, stable, high), clock.now_ms(), clock.monotonic(), 0)


def test_the_read_time_is_unknown_before_all_records_of_one_observation_are_read(clock: ManualClock) -> None:
    horizon = ReadHorizon(clock)
    assert (horizon.now().complete_at, horizon.now().age_s, horizon.now().is_behind) == (0, float("inf"), False)
    horizon.add(snapshot(clock, 10), 9)
    assert (horizon.now().complete_at, horizon.now().is_behind) == (0, True)


def test_an_observation_is_complete_once_its_high_watermark_is_read(clock: ManualClock) -> None:
    horizon, begun = ReadHorizon(clock), clock.now_ms()
    for high in range(10, 100, 10):
        horizon.add(snapshot(clock, high), 0)
        clock.sleep(5)
    horizon.read_to(35)
    assert (horizon.now().complete_at, horizon.now().age_s) == (begun + 10_000, 35.0)
    horizon.read_to(90)
    assert (horizon.now().complete_at, horizon.now().is_behind) == (begun + 40_000, False)


def test_an_old_log_read_slowly_takes_bounded_memory_and_is_never_reported_too_complete(
    clock: ManualClock,
) -> None:
    horizon, begun = ReadHorizon(clock), clock.now_ms()
    for second in range(4_000):
        horizon.add(snapshot(clock, second + 1), 0)
        clock.sleep(1)
    assert len(horizon._ahead) <= 256
    horizon.read_to(2_000)
    seconds_read = (horizon.now().complete_at - begun) / 1000
    assert 1_950 < seconds_read < 2_000
    horizon.read_to(4_000)
    assert horizon.now().complete_at == begun + 3_999_000


def test_a_transaction_is_the_same_one_while_it_begins_at_the_same_offset(clock: ManualClock) -> None:
    horizon, begun = ReadHorizon(clock), clock.now_ms()
    for high in (12, 15):
        horizon.add(snapshot(clock, high, last_stable=10), 10)
        clock.sleep(5)
    assert horizon.now().transaction == OpenTransaction(10, 5, begun)
    horizon.add(snapshot(clock, 20, last_stable=16), 16)
    assert horizon.now().transaction == OpenTransaction(16, 4, begun + 10_000)
    horizon.add(snapshot(clock, 21), 21)
    assert horizon.now().transaction is None
