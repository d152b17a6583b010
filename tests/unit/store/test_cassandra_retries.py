"""Calls without an answer are repeated with growing delays, until a deadline."""

from collections.abc import Callable

import pytest

from strandline.clock import ManualClock
from strandline.store.cassandra.failures import Unanswered
from strandline.store.cassandra.retries import Retries, RetryPolicy
from strandline.store.protocol import StoreRefused, StoreUnavailable

pytestmark = pytest.mark.unit

PATIENCE = RetryPolicy(deadline=10.0, min_pause=0.1, max_pause=1.0)


class RecordingClock(ManualClock):
    """A clock that records its sleeps."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        super().sleep(seconds)


@pytest.fixture
def clock() -> RecordingClock:
    return RecordingClock()


def failing(times: int, error: Exception) -> Callable[[], str]:
    """A call that raises this many times before it returns."""
    left = [error] * times

    def call() -> str:
        if left:
            raise left.pop()
        return "done"

    return call


def test_an_answer_at_once_takes_no_time(clock: RecordingClock) -> None:
    assert Retries(clock, PATIENCE).run(failing(0, Unanswered("no"))) == "done"
    assert clock.pauses == []


def test_pauses_double_up_to_the_longest_and_are_half_random(clock: RecordingClock) -> None:
    assert Retries(clock, PATIENCE).run(failing(7, Unanswered("no"))) == "done"
    for pause, longest in zip(clock.pauses, [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0], strict=True):
        assert longest / 2 <= pause <= longest
    assert len({round(pause / longest, 6) for pause, longest in zip(clock.pauses[4:], [1.0] * 3, strict=True)}) == 3


def test_after_the_deadline_the_last_error_is_raised_with_the_number_of_attempts(clock: RecordingClock) -> None:
    last = Unanswered("Cassandra at a:1 did not answer to read x", remedy="Look at it")
    with pytest.raises(
        StoreUnavailable, match=r"did not answer to read x \(tried \d+ times in .* s\)\. Look at it"
    ) as raised:
        Retries(clock, PATIENCE).run(failing(1_000, last))
    assert raised.value.__cause__ is last
    assert PATIENCE.deadline - PATIENCE.max_pause < clock.monotonic() <= PATIENCE.deadline


def test_no_pause_reaches_past_the_deadline(clock: RecordingClock) -> None:
    with pytest.raises(StoreUnavailable, match="tried 1 times"):
        Retries(clock, RetryPolicy(deadline=0.0)).run(failing(1, Unanswered("no")))
    assert clock.pauses == []


@pytest.mark.parametrize("error", [StoreRefused("never"), StoreUnavailable("gave up"), ZeroDivisionError()])
def test_other_errors_are_not_retried(clock: RecordingClock, error: Exception) -> None:
    with pytest.raises(type(error)):
        Retries(clock, PATIENCE).run(failing(1, error))
    assert clock.pauses == []
