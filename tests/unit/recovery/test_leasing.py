"""The states of a job, and the transitions that a worker may make."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from strandline.errors import Fatal, Retryable
from strandline.recovery.leasing import (
    MAX_REASON_CHARS,
    LeaseLost,
    LeasePolicy,
    fail,
    finish,
    heartbeat_of,
    is_leasable,
    is_open,
    lease,
    reclaim,
    release,
    renew,
)
from strandline.store.jobs import Job, JobState
from support.manifest_rows import NEVER, SHARD

pytestmark = pytest.mark.unit

NOW = 1_700_000_000_000
POLICY = LeasePolicy()
PENDING = Job(SHARD, 8, "plan", 100, 150, frozenset({0, 1}), wants_keys=True, life=NEVER, epoch=4)
LEASED = lease(PENDING, "w", NOW, POLICY)
STATES = {state: replace(LEASED, state=state) for state in JobState}


def test_a_lease_is_two_minutes_long_under_an_epoch_of_its_own() -> None:
    assert replace(PENDING, state=JobState.LEASED, epoch=5, worker="w", leased_until=NOW + 120_000) == LEASED
    assert (POLICY.lease_ms, POLICY.renew_ms, POLICY.failures_allowed) == (120_000, 20_000, 3)


@pytest.mark.parametrize("state", [JobState.LEASED, JobState.DONE, JobState.FAILED])
def test_only_a_pending_job_can_be_leased(state: JobState) -> None:
    assert is_leasable(PENDING)
    assert not is_leasable(STATES[state])
    with pytest.raises(ValueError, match="can't be leased to"):
        lease(STATES[state], "w", NOW, POLICY)


def test_each_renewal_is_a_new_heartbeat_whatever_the_clock_shows() -> None:
    renewed = renew(LEASED, LEASED, NOW - 10**9, POLICY)
    assert heartbeat_of(renewed) != heartbeat_of(LEASED)
    assert heartbeat_of(renew(renewed, renewed, NOW - 10**9, POLICY)) != heartbeat_of(renewed)


def test_a_job_is_open_until_it_is_done_or_has_failed_permanently() -> None:
    assert [state for state in JobState if is_open(STATES[state])] == [JobState.PENDING, JobState.LEASED]


def test_a_renewed_lease_lasts_from_now_on_and_never_gets_shorter() -> None:
    assert renew(LEASED, LEASED, NOW + 20_000, POLICY) == replace(LEASED, leased_until=NOW + 140_000, renewals=1)
    assert renew(LEASED, LEASED, NOW - 50_000, POLICY) == replace(LEASED, renewals=1)


def test_a_finished_job_keeps_its_worker_and_epoch() -> None:
    assert finish(LEASED, LEASED) == replace(LEASED, state=JobState.DONE, leased_until=0)


def test_a_released_job_is_pending_and_has_not_failed() -> None:
    assert release(LEASED, LEASED) == replace(PENDING, epoch=5)
    assert release(LEASED, LEASED, "no broker").reason == "offsets [100, 150): no broker"


def test_a_job_fails_permanently_past_the_failures_allowed() -> None:
    job = PENDING
    for failures in (1, 2, 3):
        held = lease(job, "w", NOW, POLICY)
        job = fail(held, held, "bad record", POLICY)
        assert (job.state, job.failures, job.worker, job.leased_until) == (JobState.PENDING, failures, "", 0)
        assert job.reason == "offsets [100, 150): bad record"
    held = lease(job, "w", NOW, POLICY)
    job = fail(held, held, "bad record", POLICY)
    assert (job.state, job.failures, job.worker, job.epoch) == (JobState.FAILED, 4, "w", 8)


def test_a_lost_lease_counts_as_a_failure() -> None:
    """Otherwise a job that kills its worker would be retried forever."""
    job = reclaim(LEASED, POLICY)
    assert (job.state, job.failures, job.epoch) == (JobState.PENDING, 1, 5)
    assert job.reason == "offsets [100, 150): its worker was lost: w"
    assert reclaim(replace(LEASED, failures=3), POLICY).state is JobState.FAILED
    with pytest.raises(ValueError, match="can't be reclaimed from"):
        reclaim(job, POLICY)


def test_a_reason_is_short_whatever_failed() -> None:
    job = fail(LEASED, LEASED, "x" * 100_000, POLICY)
    assert len(job.reason) == MAX_REASON_CHARS == 1_000
    assert job.reason.startswith("offsets [100, 150): xxx")


OTHERS = {
    "a later lease": replace(LEASED, epoch=6),
    "another worker": replace(LEASED, worker="v"),
    "another plan": replace(LEASED, plan="another"),
    "taken back": replace(PENDING, epoch=5),
    "done by another": replace(LEASED, state=JobState.DONE, epoch=6),
    "failed": replace(LEASED, state=JobState.FAILED),
}
TRANSITIONS: dict[str, Callable[[Job], Job]] = {
    "renew": lambda job: renew(job, LEASED, NOW, POLICY),
    "finish": lambda job: finish(job, LEASED),
    "fail": lambda job: fail(job, LEASED, "bad", POLICY),
    "release": lambda job: release(job, LEASED),
}


@pytest.mark.parametrize("stored", OTHERS.values(), ids=OTHERS.keys())
@pytest.mark.parametrize("transition", TRANSITIONS.values(), ids=TRANSITIONS.keys())
def test_a_worker_with_an_old_lease_is_refused(stored: Job, transition: Callable[[Job], Job]) -> None:
    with pytest.raises(LeaseLost, match=r"the job for bucket 8 of metrics/3, offsets \[100, 150\), is no longer"):
        transition(stored)


@pytest.mark.parametrize("transition", TRANSITIONS.values(), ids=TRANSITIONS.keys())
def test_a_lease_that_was_renewed_in_the_meantime_still_belongs_to_the_worker(transition: Callable[[Job], Job]) -> None:
    transition(replace(LEASED, leased_until=LEASED.leased_until + 20_000))


def test_a_lost_lease_is_fatal() -> None:
    assert issubclass(LeaseLost, Fatal)
    assert not issubclass(LeaseLost, Retryable)


@pytest.mark.parametrize(
    "wrong",
    [{"renew_ms": 0}, {"renew_ms": 120_000}, {"lease_ms": 0}, {"failures_allowed": -1}],
)
def test_a_policy_that_can_not_work_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"ms|failures"):
        LeasePolicy(**wrong)
