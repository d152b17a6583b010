from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.clock import ManualClock
from strandline.jobs.control_sample import ControlSample
from strandline.jobs.rate import (
    NO_THROTTLE,
    JobRates,
    RateLimit,
    Throttle,
    Throttles,
    TokenBucket,
    changed_rate,
    rate_of,
    share_of,
)
from strandline.jobs.sending.spec import SendSpec
from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.store.jobs import JobState
from strandline.time_range import ALL_TIMES

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


def test_a_clock_that_goes_back_adds_no_tokens() -> None:
    bucket = TokenBucket.full(100, burst=50, now=10).taken(50, now=10)
    assert bucket.filled(5) == bucket


def acquire(throttle: Throttle, samples: int, clock: ManualClock) -> None:
    """Wait until the samples may land."""
    while (wait := throttle.wait_s(samples)) > 0:
        clock.sleep(wait)


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
        acquire(limit, samples, clock)
        assert sent <= (rate * (clock.monotonic() + burst_s)) * 1.001 + 1
        sent += samples
        clock.sleep(pause)


def test_a_job_that_always_has_a_chunk_uses_its_rate() -> None:
    clock = ManualClock()
    limit = RateLimit(1_000, clock)
    for _ in range(101):
        acquire(limit, 500, clock)
    assert clock.monotonic() == pytest.approx(101 * 500 / 1_000 - 1, abs=0.6)


def test_a_chunk_that_has_to_wait_does_not_count_as_landed() -> None:
    limit = RateLimit(1_000, ManualClock())
    assert limit.wait_s(6_000) == 0
    assert [limit.wait_s(1_000_000) for _ in range(3)] == [pytest.approx(5)] * 3


def test_without_a_rate_nothing_waits() -> None:
    assert all(NO_THROTTLE.wait_s(10**9) == 0 for _ in range(100))


class Gate:
    def __init__(self, wait: float) -> None:
        self.wait = wait

    def wait_s(self, samples: int) -> float:  # noqa: ARG002 - of the protocol
        return self.wait


def test_samples_delayed_by_one_limit_do_not_consume_later_limits() -> None:
    gate, limit = Gate(3.0), RateLimit(1_000, ManualClock())
    both = Throttles((gate, limit))
    assert [both.wait_s(5_000) for _ in range(9)] == [3.0] * 9
    gate.wait = 0.0
    assert both.wait_s(5_000) == 0
    assert both.wait_s(5_000) == pytest.approx(4)


def test_a_limit_whose_rate_is_changed_still_waits_for_what_was_sent_beyond_the_former_rate() -> None:
    clock = ManualClock()
    limit = RateLimit(1_000, clock)
    assert limit.wait_s(6_000) == 0
    limit.change(500)
    assert limit.wait_s(1) == pytest.approx(10)
    limit.change(5_000)
    assert limit.wait_s(1) == pytest.approx(1)
    clock.sleep(100)
    limit.change(10)
    # Saved tokens are limited to the burst of the lower rate.
    assert limit.wait_s(20) == 0
    assert limit.wait_s(1) == pytest.approx(1)


JOB = BulkJob("metrics", "job", "import", '{"ordered":false}', "hash", 4, 1, 0)


def leased(*workers: str) -> list[BulkPart]:
    """Parts leased by these workers, and two that are not leased, one of which another worker has released."""
    parts = [BulkPart("metrics", "job", number, "", 1) for number in range(len(workers) + 2)]
    taken = [replace(part, state=JobState.LEASED, worker=name) for part, name in zip(parts, workers, strict=False)]
    return [*taken, parts[-2], replace(parts[-1], worker="gone")]


def test_a_job_has_the_rate_that_it_was_given_last() -> None:
    assert rate_of(JOB) is None
    with_rate = changed_rate(JOB, 500.0)
    assert (rate_of(with_rate), with_rate.version) == (500.0, 1)
    assert changed_rate(with_rate, 500.0) == with_rate
    without = changed_rate(with_rate, None)
    assert (rate_of(without), without.version, without.spec) == (None, 2, JOB.spec)


def test_the_spec_of_a_send_is_read_whether_its_job_has_a_rate_or_not() -> None:
    spec = SendSpec("up", "alerts", ALL_TIMES, {"value": "{host}"}, ControlSample(0.0))
    job = replace(JOB, kind="send", spec=spec.to_json())
    assert SendSpec.from_json(changed_rate(job, 5.0).spec) == SendSpec.from_json(job.spec)


def test_workers_that_have_parts_share_the_rate_equally() -> None:
    assert share_of(600, leased(), "a") == 600
    assert share_of(600, leased("a", "a"), "a") == 600
    assert share_of(600, leased("a", "b", "b"), "a") == 300
    # A worker without parts counts too.
    assert share_of(600, leased("a", "b"), "c") == 200


def test_a_worker_lands_at_its_share_of_the_job_s_rate_or_at_its_own() -> None:
    job, clock = changed_rate(JOB, 1_000.0), ManualClock()
    rates, slow = JobRates("a", clock), JobRates("b", clock, 100.0)
    for limits in (rates, slow):
        limits.update(job, leased("a", "b"))
        assert limits.wait_s("job", 3_000) == 0
    assert (rates.wait_s("job", 1), slow.wait_s("job", 1)) == (pytest.approx(5), pytest.approx(29))
    assert rates.wait_s("another job", 10**9) == 0
    rates.update(job, leased("a"))
    assert rates.wait_s("job", 1) == pytest.approx(2.5)
    rates.update(changed_rate(job, None), leased("a"))
    slow.update(changed_rate(job, None), leased("a"))
    assert (rates.wait_s("job", 10**9), slow.wait_s("job", 1)) == (0, pytest.approx(29))


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, -1), (float("nan"), 1)])
def test_impossible_rates_are_refused(rate: float, burst: float) -> None:
    with pytest.raises(ValueError, match="rate = "):
        TokenBucket.full(rate, burst, 0)
