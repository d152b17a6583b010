"""Whether and when a shard's process is restarted."""

import signal
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.errors import ExitCode
from strandline.node.supervisor.restarting import (
    ProcessEnd,
    RestartAt,
    RestartHistory,
    RestartPolicy,
    StayDown,
    decide,
    describe_end,
)

pytestmark = pytest.mark.unit

POLICY = RestartPolicy(restarts=3, window_s=100.0, min_pause_s=1.0, max_pause_s=8.0, steady_s=60.0)
NEW = RestartHistory()


def restart_at(policy: RestartPolicy, history: RestartHistory, end: ProcessEnd, jitter: float = 0.0) -> RestartAt:
    decision = decide(policy, history, end, jitter)
    assert isinstance(decision, RestartAt)
    return decision


@pytest.mark.parametrize(
    ("code", "pause"),
    [
        (ExitCode.OK, 1.0),
        (ExitCode.FAILED, 1.0),
        (ExitCode.INTERRUPTED, 1.0),
        (-signal.SIGKILL, 1.0),
        (-signal.SIGSEGV, 1.0),
        (126, 1.0),
        (ExitCode.FENCED, 60.0),
    ],
)
def test_a_process_that_ended_is_restarted_after_a_pause(code: int, pause: float) -> None:
    assert restart_at(POLICY, NEW, ProcessEnd(1000.0, code)).at == 1000.0 + pause


def test_an_error_that_a_restart_would_repeat_is_down_at_once() -> None:
    assert isinstance(decide(POLICY, NEW, ProcessEnd(0.0, ExitCode.DATA_LOST)), StayDown)


def test_invalid_settings_are_retried_after_the_longest_pause_and_do_not_count() -> None:
    full = RestartHistory((1.0, 2.0, 3.0), 3)
    assert restart_at(POLICY, full, ProcessEnd(4.0, ExitCode.USAGE)) == RestartAt(4.0 + POLICY.max_pause_s, full)


@pytest.mark.parametrize(("row", "pause"), [(0, 1.0), (1, 2.0), (2, 4.0), (3, 8.0), (4, 8.0), (5000, 8.0)])
def test_pauses_double_up_to_the_maximum(row: int, pause: float) -> None:
    decision = restart_at(POLICY, RestartHistory((), row), ProcessEnd(0.0, 1))
    assert decision.at == pause
    assert decision.history.ends_in_row == row + 1


@pytest.mark.parametrize(("active_s", "pause"), [(59.0, 4.0), (60.0, 1.0)])
def test_a_process_that_was_active_for_long_enough_begins_with_the_shortest_pause(
    active_s: float, pause: float
) -> None:
    assert restart_at(POLICY, RestartHistory((), 2), ProcessEnd(0.0, 1, active_s)).at == pause


def test_jitter_spreads_the_restarts_and_never_makes_one_earlier() -> None:
    assert restart_at(POLICY, RestartHistory((), 2), ProcessEnd(0.0, 1), 0.5).at == 4.5
    assert restart_at(POLICY, NEW, ProcessEnd(0.0, ExitCode.FENCED), 0.5).at == 67.5


def test_more_restarts_in_the_window_than_allowed_mean_down_and_name_the_limit() -> None:
    decision = decide(POLICY, RestartHistory((10.0, 20.0, 30.0), 3), ProcessEnd(31.0, 1))
    assert decision == StayDown("it has been restarted 3 times within 100 s, the limit of node.restarts")


@pytest.mark.parametrize("restarts", [0, 1, 3])
def test_a_policy_that_does_not_give_up_has_pauses_and_no_limit(restarts: int) -> None:
    policy, history, at, pauses = replace(POLICY, restarts=restarts, gives_up=False), NEW, 0.0, []
    for _ in range(50):
        decision = decide(policy, history, ProcessEnd(at, 1))
        assert isinstance(decision, RestartAt)
        pauses.append(decision.at - at)
        at, history = decision.at, decision.history
    assert pauses[:5] == [1.0, 2.0, 4.0, 8.0, 8.0]
    assert set(pauses[5:]) == {8.0}


def test_restarts_before_the_window_do_not_count() -> None:
    decision = restart_at(POLICY, RestartHistory((10.0, 20.0, 30.0), 3), ProcessEnd(102.0, 1))
    assert decision.at == 110.0, "the restart at 10 s is just outside the window"
    assert decision.history.restarts == (20.0, 30.0, 110.0)


def test_being_active_does_not_clear_the_window() -> None:
    assert isinstance(decide(POLICY, RestartHistory((10.0, 20.0, 30.0), 3), ProcessEnd(95.0, 1, 61.0)), StayDown)


def test_a_retryable_error_waits_for_the_window_instead_of_being_down() -> None:
    decision = restart_at(POLICY, RestartHistory((10.0, 20.0, 30.0), 3), ProcessEnd(31.0, 1, retryable=True))
    assert decision.at == 110.0
    assert decision.history.restarts == (20.0, 30.0, 110.0)


@pytest.mark.parametrize("retryable", [False, True])
def test_a_limit_of_zero_allows_no_restart(retryable: bool) -> None:
    decision = decide(RestartPolicy(0, 100.0), NEW, ProcessEnd(0.0, 1, retryable=retryable))
    assert decision == StayDown("node.restarts is 0, so it is not restarted")


def test_a_fencing_counts_neither_in_the_window_nor_in_the_back_off() -> None:
    history = RestartHistory((10.0, 20.0, 30.0), 3)
    decision = restart_at(POLICY, history, ProcessEnd(31.0, ExitCode.FENCED))
    assert decision == RestartAt(91.0, history)


def test_a_process_that_reported_a_fencing_counts_as_fenced_whatever_ended_it() -> None:
    assert restart_at(POLICY, NEW, ProcessEnd(0.0, -9, fenced=True)) == RestartAt(60.0, NEW)


@pytest.mark.parametrize(
    ("code", "words"),
    [(0, "ended with exit code 0"), (-9, "was ended by SIGKILL"), (-250, "was ended by signal 250")],
)
def test_an_end_is_described(code: int, words: str) -> None:
    assert describe_end(code) == words


@given(
    st.integers(0, 6),
    st.floats(1, 1000),
    st.lists(st.tuples(st.floats(0, 300), st.booleans(), st.floats(0, 0.999)), max_size=60),
)
def test_no_window_ever_holds_more_restarts_than_allowed(
    restarts: int, window: float, lives: list[tuple[float, bool, float]]
) -> None:
    policy, history, now, starts = RestartPolicy(restarts, window), NEW, 0.0, []
    for lived, retryable, jitter in lives:
        now += lived
        decision = decide(policy, history, ProcessEnd(now, 1, lived, retryable), jitter)
        if isinstance(decision, StayDown):
            break
        assert decision.at > now
        now, history = decision.at, decision.history
        starts.append(now)
    for first in starts:
        # With a tolerance for the rounding of the sum that delays a start until the end of the window.
        assert sum(first <= start < first + window - 1e-6 for start in starts) <= restarts
