"""Whether another process is still the holder, by its heartbeats alone."""

import pytest

from strandline.clock import ManualClock
from strandline.recovery.heartbeat_watch import HeartbeatWatch

pytestmark = pytest.mark.unit


def test_a_heartbeat_that_was_unchanged_for_a_full_term_is_expired() -> None:
    clock = ManualClock()
    watch = HeartbeatWatch(clock, 30.0)
    assert not watch.is_expired("a", 1)
    clock.sleep(29.9)
    assert not watch.is_expired("a", 1)
    clock.sleep(0.1)
    assert watch.is_expired("a", 1)


def test_a_new_heartbeat_starts_a_new_term() -> None:
    clock = ManualClock()
    watch = HeartbeatWatch(clock, 30.0)
    watch.is_expired("a", 1)
    clock.sleep(29)
    assert not watch.is_expired("a", 2)
    clock.sleep(29)
    assert not watch.is_expired("a", 2)
    clock.sleep(1)
    assert watch.is_expired("a", 2)


def test_each_key_is_watched_separately_until_it_is_forgotten() -> None:
    clock = ManualClock()
    watch = HeartbeatWatch(clock, 30.0)
    watch.is_expired("a", 1)
    clock.sleep(15)
    watch.is_expired("b", 1)
    clock.sleep(15)
    assert watch.is_expired("a", 1)
    assert not watch.is_expired("b", 1)
    watch.keep({"b"})
    assert not watch.is_expired("a", 1), "it is seen for the first time again"
    clock.sleep(15)
    assert watch.is_expired("b", 1)
