"""The estimated remaining time of a start's phase."""

import pytest

from strandline.node.shard.phases import seconds_left
from strandline.node.shard.status import Phase, Status

pytestmark = pytest.mark.unit

BEGUN = 1_700_000_000_000


def replaying(fraction: float | None) -> Status:
    return Status(Phase.REPLAYING, fraction, entered={Phase.REPLAYING.value: BEGUN})


def test_a_quarter_in_ten_seconds_leaves_thirty_seconds() -> None:
    assert seconds_left(replaying(0.25), BEGUN + 10_000) == pytest.approx(30)


def test_a_phase_that_is_done_has_no_time_left() -> None:
    assert seconds_left(replaying(1.0), BEGUN + 10_000) == 0


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
def test_insufficient_progress_gives_no_estimate(status: Status, elapsed_ms: int) -> None:
    assert seconds_left(status, BEGUN + elapsed_ms) is None


def test_only_a_start_has_time_left() -> None:
    assert seconds_left(Status(Phase.ACTIVE, 0.5, entered={Phase.ACTIVE.value: BEGUN}), BEGUN + 10_000) is None


def test_the_estimate_of_a_shard_that_catches_up_follows_its_lag() -> None:
    status = Status()
    status.catch_up(1000, BEGUN)
    assert (status.phase, status.fraction, seconds_left(status, BEGUN + 2_000)) == (Phase.CATCHING_UP, 0.0, None)
    status.catch_up(None, BEGUN + 5_000)
    status.catch_up(750, BEGUN + 10_000)
    assert status.fraction == pytest.approx(0.25)
    assert seconds_left(status, BEGUN + 10_000) == pytest.approx(30)


def test_a_log_that_grows_faster_than_it_is_read_has_no_estimate() -> None:
    status = Status()
    status.catch_up(100, BEGUN)
    status.catch_up(400, BEGUN + 10_000)
    assert (status.fraction, seconds_left(status, BEGUN + 10_000)) == (0.0, None)
    status.catch_up(200, BEGUN + 20_000)
    assert status.fraction == pytest.approx(0.5)


def test_a_shard_that_starts_at_the_end_of_the_log_has_caught_up() -> None:
    status = Status()
    status.catch_up(0, BEGUN)
    assert status.fraction == 1.0


def test_a_fenced_shard_has_no_time_left() -> None:
    status = Status(Phase.FENCED)
    status.catch_up(5, BEGUN)
    assert (status.phase, status.fraction) == (Phase.FENCED, None)
