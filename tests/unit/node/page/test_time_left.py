import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.node.page.time_left import LagSeen, TimeLeft, of_lag, of_phase
from strandline.node.shard.status import Phase, Status

pytestmark = pytest.mark.unit

BEGUN = 1_700_000_000_000


def replaying(fraction: float | None) -> Status:
    return Status(Phase.REPLAYING, fraction, entered={Phase.REPLAYING.value: BEGUN})


def catching_up(lag: int | None) -> Status:
    return Status(Phase.CATCHING_UP, lag=lag, entered={Phase.CATCHING_UP.value: BEGUN})


def test_a_quarter_in_ten_seconds_leaves_thirty() -> None:
    assert of_phase(replaying(0.25), BEGUN + 10_000) == pytest.approx(30)


def test_a_phase_that_is_done_has_no_time_left() -> None:
    assert of_phase(replaying(1.0), BEGUN + 10_000) == 0


@pytest.mark.parametrize(
    ("status", "elapsed_ms"),
    [
        (replaying(None), 10_000),
        (replaying(0.0), 10_000),
        (replaying(0.001), 10_000),
        (replaying(0.5), 200),
        (Status(Phase.REPLAYING, 0.5), 10_000),
        # The wall clock was set back.
        (replaying(0.5), -5_000),
    ],
    ids=["no fraction", "nothing done", "hardly begun", "too soon", "begin unknown", "before its begin"],
)
def test_what_says_nothing_about_the_rest_gives_no_estimate(status: Status, elapsed_ms: int) -> None:
    assert of_phase(status, BEGUN + elapsed_ms) is None


def test_a_lag_that_halves_in_ten_seconds_is_gone_in_ten_more() -> None:
    assert of_lag(LagSeen(5.0, 1000), LagSeen(15.0, 500)) == pytest.approx(10)


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.floats(0, 100))
def test_an_estimate_is_never_negative_and_there_is_none_while_the_lag_does_not_fall(
    before: int, now: int, elapsed: float
) -> None:
    estimate = of_lag(LagSeen(0.0, before), LagSeen(elapsed, now))
    if now >= before or elapsed < 1:
        assert estimate is None
    else:
        assert estimate is not None
        assert estimate >= 0


def test_a_shard_that_catches_up_is_judged_by_the_trend_of_its_lag() -> None:
    time_left = TimeLeft()
    assert time_left.estimate(0, catching_up(1000), BEGUN, 10.0) is None
    assert time_left.estimate(0, catching_up(800), BEGUN, 12.0) == pytest.approx(8)


def test_pages_that_ask_at_the_same_time_do_not_spoil_the_trend() -> None:
    time_left = TimeLeft()
    for at in (10.0, 10.01, 10.02):
        time_left.estimate(0, catching_up(1000), BEGUN, at)
    assert time_left.estimate(0, catching_up(500), BEGUN, 20.0) == pytest.approx(10)


def test_the_trend_forgets_what_is_long_gone() -> None:
    time_left = TimeLeft()
    time_left.estimate(0, catching_up(10_000), BEGUN, 0.0)
    time_left.estimate(0, catching_up(1000), BEGUN, 100.0)
    assert time_left.estimate(0, catching_up(900), BEGUN, 110.0) == pytest.approx(90)


def test_each_shard_has_its_own_trend_which_ends_with_the_phase() -> None:
    time_left = TimeLeft()
    time_left.estimate(0, catching_up(1000), BEGUN, 10.0)
    assert time_left.estimate(1, catching_up(10), BEGUN, 12.0) is None
    time_left.estimate(0, Status(Phase.ACTIVE, lag=0), BEGUN, 14.0)
    assert time_left.estimate(0, catching_up(500), BEGUN, 16.0) is None


def test_an_active_shard_has_nothing_left_to_wait_for() -> None:
    status = Status(Phase.ACTIVE, 0.5, lag=3, entered={Phase.ACTIVE.value: BEGUN})
    assert TimeLeft().estimate(0, status, BEGUN + 10_000, 10.0) is None


def test_a_phase_with_a_known_part_needs_no_trend() -> None:
    assert TimeLeft().estimate(0, replaying(0.5), BEGUN + 10_000, 10.0) == pytest.approx(10)
