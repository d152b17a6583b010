"""The states of a leased unit of work and the transitions between them: pure functions.

A unit is a replay job or a part of a bulk job. It is pending, leased to a worker until some time, done, or permanently
failed. Each lease has its own epoch. These functions only compute the new state; the store's compare-and-set performs
the transition (see `lease_board`).
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TypeVar

from strandline.errors import Fatal
from strandline.store.jobs import JobState
from strandline.store.leasable import Leasable

U = TypeVar("U", bound=Leasable)

MAX_REASON_CHARS = 1_000
"""Longer reasons are truncated: they are stored in a row, and Spark's tracebacks are very long."""

_SUSPECT_PREFIX = "read with others: "


class LeaseLost(Fatal):
    """The worker no longer has the lease: another worker may have the unit.

    Fatal for this lease, because the same call can never succeed, but for nothing else: the worker drops the unit and
    takes another. It never ends a process.
    """


@dataclass(frozen=True, slots=True)
class LeasePolicy:
    """The length of a lease and the interval of renewals, in milliseconds, and how many failures of a unit are allowed
    before it fails permanently.
    """

    lease_ms: int = 120_000
    renew_ms: int = 20_000
    failures_allowed: int = 3

    def __post_init__(self) -> None:
        if not 0 < self.renew_ms < self.lease_ms:
            raise ValueError(f"renew_ms = {self.renew_ms} must be positive and less than lease_ms = {self.lease_ms}")
        if self.failures_allowed < 0:
            raise ValueError(f"failures_allowed = {self.failures_allowed} must be a non-negative integer")


def never_gone(_worker: str) -> bool:
    """For callers that can't check processes: a worker is given up only when its lease is lost by time."""
    return False


def is_leasable(unit: Leasable) -> bool:
    """Whether a worker may lease a unit. A lost lease has to be reclaimed first."""
    return unit.state is JobState.PENDING


def heartbeat_of(unit: Leasable) -> tuple[Hashable, int, str, int, int]:
    """A value that changes with each renewal of a lease, whatever its holder's clock shows. Workers of older versions
    do not count renewals, but change the expiry time.
    """
    return *lease_of(unit), unit.renewals, unit.leased_until


def is_open(unit: Leasable) -> bool:
    """Whether a unit still has to be done."""
    return unit.state in (JobState.PENDING, JobState.LEASED)


def lease(unit: U, worker: str, now: int, policy: LeasePolicy) -> U:
    """Lease a pending unit to a worker, under a new epoch."""
    if not is_leasable(unit):
        raise ValueError(f"{describe(unit)} is {unit.state} and can't be leased to {worker}: only pending units can")
    return replace(
        unit, state=JobState.LEASED, epoch=unit.epoch + 1, worker=worker, leased_until=now + policy.lease_ms, reason=""
    )


def renew(unit: U, held: U, now: int, policy: LeasePolicy) -> U:
    """Extend a lease from `now`. `held` is the unit as its worker knows it. Raises `LeaseLost`."""
    _require_held(unit, held)
    # A clock that was set back must not shorten a lease that others may already have read.
    return replace(unit, leased_until=max(unit.leased_until, now + policy.lease_ms), renewals=unit.renewals + 1)


def finish(unit: U, held: U) -> U:
    """The work is done, and all of it is in the store. Raises `LeaseLost`."""
    _require_held(unit, held)
    return replace(unit, state=JobState.DONE, leased_until=0, reason="")


def fail(unit: U, held: U, reason: str, policy: LeasePolicy) -> U:
    """The work failed: the unit is pending again, or permanently failed if it is past the failures allowed. Raises
    `LeaseLost`.
    """
    _require_held(unit, held)
    return count_failure(unit, reason, policy)


def release(unit: U, held: U, reason: str = "") -> U:
    """Return a unit that is not at fault: this does not count as a failure. Raises `LeaseLost`."""
    _require_held(unit, held)
    return replace(unit, state=JobState.PENDING, worker="", leased_until=0, reason=_bounded(unit, reason))


def suspect_reason(reason: str) -> str:
    """The reason to release a unit whose wave failed, though perhaps not because of this unit. It is stored with the
    unit, so the next worker knows that it is a suspect, even after the first worker has ended.
    """
    return _SUSPECT_PREFIX + reason


def is_marked_suspect(unit: Leasable) -> bool:
    """Whether a unit was released with such a reason, and not leased since."""
    return unit.state is JobState.PENDING and unit.reason.startswith(_bounded(unit, _SUSPECT_PREFIX))


def reclaim(unit: U, policy: LeasePolicy) -> U:
    """A lease was lost. This counts as a failure: a unit that always kills its worker must not be retried forever."""
    if unit.state is not JobState.LEASED:
        raise ValueError(
            f"{describe(unit)} is {unit.state} and can't be reclaimed from {unit.worker}: only leased units can"
        )
    return count_failure(unit, f"its worker was lost: {unit.worker}", policy)


def is_same_lease(unit: Leasable, held: Leasable) -> bool:
    """Whether a unit is still leased as its worker knows it, though perhaps until another time."""
    return unit.state is JobState.LEASED and lease_of(unit) == lease_of(held)


def lease_of(unit: Leasable) -> tuple[Hashable, int, str]:
    """The identity of a lease."""
    return unit.key, unit.epoch, unit.worker


def describe(unit: Leasable) -> str:
    """A unit's name and detail, for messages."""
    return f"{unit.name}, {unit.detail}," if unit.detail else unit.name


def _require_held(unit: Leasable, held: Leasable) -> None:
    if not is_same_lease(unit, held):
        raise LeaseLost(
            f"{describe(held)} is no longer leased to {held.worker} under epoch {held.epoch}: it is {unit.state} under"
            f" epoch {unit.epoch}"
        )


def count_failure(unit: U, reason: str, policy: LeasePolicy) -> U:
    """The unit after another failure: pending, or permanently failed if it has failed too often."""
    failures = unit.failures + 1
    is_final = failures > policy.failures_allowed
    return replace(
        unit,
        state=JobState.FAILED if is_final else JobState.PENDING,
        worker=unit.worker if is_final else "",
        leased_until=0,
        failures=failures,
        reason=_bounded(unit, reason),
    )


def _bounded(unit: Leasable, reason: str) -> str:
    beginning = f"{unit.detail}: " if unit.detail else ""
    return f"{beginning}{reason}"[:MAX_REASON_CHARS] if reason else ""
