import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.clock import ManualClock
from strandline.jobs.rate import RateLimit, TokenBucket, share_of

pytestmark = pytest.mark.unit


def test_a_full_bucket_lets_its_burst_through_at_once_and_then_the_rate() -> None:
    bucket = TokenBucket.full(100, burst=50, now=0).taken(50, now=0)
    assert bucket.wait(0) == 0
    bucket = bucket.taken(200, now=0)
    assert bucket.wait(0) == pytest.approx(2)
    assert bucket.wait(1.5) == pytest.approx(0.5)
    assert bucket.wait(3) == 0


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    assert TokenBucket.full(100, burst=50, now=0).taken(50, now=0).filled(1_000).tokens == 50


def test_a_clock_that_goes_back_gives_nothing() -> None:
    bucket = TokenBucket.full(100, burst=50, now=10).taken(50, now=10)
    assert bucket.filled(5) == bucket


@given(
    st.floats(1, 1e7),
    st.floats(0, 5),
    st.lists(st.tuples(st.integers(1, 500_000), st.floats(0, 3)), min_size=1, max_size=40),
)
def test_no_more_is_sent_than_the_rate_a_burst_and_one_chunk(
    rate: float, burst_s: float, chunks: list[tuple[int, float]]
) -> None:
    clock = ManualClock()
    limit = RateLimit(rate, clock, burst_s=burst_s)
    sent = 0
    for samples, pause in chunks:
        assert limit.acquire(samples, float("inf"))
        assert sent <= (rate * (clock.monotonic() + burst_s)) * 1.001 + 1
        sent += samples
        clock.sleep(pause)


def test_a_job_that_always_has_a_chunk_uses_its_rate() -> None:
    clock = ManualClock()
    limit = RateLimit(1_000, clock)
    for _ in range(101):
        assert limit.acquire(500, float("inf"))
    assert clock.monotonic() == pytest.approx(101 * 500 / 1_000 - 1, abs=0.6)


def test_a_chunk_that_would_have_to_wait_too_long_is_not_let_through() -> None:
    clock = ManualClock()
    limit = RateLimit(1_000, clock)
    assert limit.acquire(6_000, until=1)
    assert not limit.acquire(1, until=4.9)
    assert clock.monotonic() == 0
    assert limit.acquire(1, until=5.1)
    assert clock.monotonic() == pytest.approx(5)


def test_without_a_rate_nothing_waits() -> None:
    clock = ManualClock()
    limit = RateLimit(None, clock)
    assert all(limit.acquire(10**9, until=0) for _ in range(100))
    assert clock.monotonic() == 0


def test_parts_that_run_at_once_share_the_rate() -> None:
    assert share_of(1_000, 4) == 250
    with pytest.raises(ValueError, match="0 parts"):
        share_of(1_000, 0)


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, -1), (float("nan"), 1)])
def test_impossible_rates_are_refused(rate: float, burst: float) -> None:
    with pytest.raises(ValueError, match="rate = "):
        TokenBucket.full(rate, burst, 0)
