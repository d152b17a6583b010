"""The states of a unit of work under a lease, and what leads from one to the next: pure functions.

A unit is a replay job or a part of a bulk job. It is pending, leased to a worker until some time, done, or failed for
good. Each lease has an epoch of its own. The store's compare-and-set makes a transition happen (see `lease_board`);
these say only what it is.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TypeVar

from strandline.errors import Fatal
from strandline.store.jobs import JobState
from strandline.store.leasable import Leasable

U = TypeVar("U", bound=Leasable)

MAX_REASON_CHARS = 1_000
"""So many characters of a reason are kept: it stands in a row of the store, and a traceback of Spark's is endless."""

_SUSPECT_PREFIX = "read with others: "


class LeaseLost(Fatal):
    """The lease is no longer the worker's: another worker may have the unit by now.

    Final for this lease, since the same call never works again, but for nothing else: the worker leaves the unit and
    takes another. It never ends a process.
    """


@dataclass(frozen=True, slots=True)
class LeasePolicy:
    """How long a lease is, how often it is renewed, in milliseconds, and how often a unit may fail before it has
    failed for good.
    """

    lease_ms: int = 120_000
    renew_ms: int = 20_000
    failures_allowed: int = 3

    def __post_init__(self) -> None:
        if not 0 < self.renew_ms < self.lease_ms:
            raise ValueError(f"a lease of {self.lease_ms} ms can't be renewed every {self.renew_ms} ms")
        if self.failures_allowed < 0:
            raise ValueError(f"{self.failures_allowed} failures were to be allowed")


def never_gone(_worker: str) -> bool:
    """For those who can't tell: a worker is given up when its lease has run out."""
    return False


def is_leasable(unit: Leasable) -> bool:
    """Whether a worker may take a unit. One with a lost lease is taken back first."""
    return unit.state is JobState.PENDING


def heartbeat_of(unit: Leasable) -> tuple[Hashable, int, str, int, int]:
    """What changes with each renewal of a lease, whatever its holder's clock shows. A worker of the version before does
    not count its renewals, but each has another time.
    """
    return *lease_of(unit), unit.renewals, unit.leased_until


def is_open(unit: Leasable) -> bool:
    """Whether something is still to be done about a unit."""
    return unit.state in (JobState.PENDING, JobState.LEASED)


def lease(unit: U, worker: str, now: int, policy: LeasePolicy) -> U:
    """Give a pending unit to a worker, under a new epoch."""
    if not is_leasable(unit):
        raise ValueError(f"{describe(unit)} is {unit.state}, and was to be leased to {worker}")
    return replace(
        unit, state=JobState.LEASED, epoch=unit.epoch + 1, worker=worker, leased_until=now + policy.lease_ms, reason=""
    )


def renew(unit: U, held: U, now: int, policy: LeasePolicy) -> U:
    """Let a lease last from now on. `held` is the unit as its worker has it. Raises `LeaseLost`."""
    _require_held(unit, held)
    # A clock that was set back must not make a lease shorter than somebody may have been told.
    return replace(unit, leased_until=max(unit.leased_until, now + policy.lease_ms), renewals=unit.renewals + 1)


def finish(unit: U, held: U) -> U:
    """The work is done, and all of it is in the store. Raises `LeaseLost`."""
    _require_held(unit, held)
    return replace(unit, state=JobState.DONE, leased_until=0, reason="")


def fail(unit: U, held: U, reason: str, policy: LeasePolicy) -> U:
    """The work failed: to be tried again, or past the failures allowed not any more. Raises `LeaseLost`."""
    _require_held(unit, held)
    return count_failure(unit, reason, policy)


def release(unit: U, held: U, reason: str = "") -> U:
    """The worker leaves the unit, through no fault of the unit's: that is no failure of it. Raises `LeaseLost`."""
    _require_held(unit, held)
    return replace(unit, state=JobState.PENDING, worker="", leased_until=0, reason=_bounded(unit, reason))


def suspect_reason(reason: str) -> str:
    """The reason to release a unit with whose wave something is wrong, though perhaps not with the unit. It stays with
    the unit, so that whoever takes it next knows, also after its worker has ended.
    """
    return _SUSPECT_PREFIX + reason


def is_marked_suspect(unit: Leasable) -> bool:
    """Whether a unit was released for such a reason, and not leased since."""
    return unit.state is JobState.PENDING and unit.reason.startswith(_bounded(unit, _SUSPECT_PREFIX))


def reclaim(unit: U, policy: LeasePolicy) -> U:
    """A lease was lost. That is a failure: a unit that ends its worker every time must not be tried for ever."""
    if unit.state is not JobState.LEASED:
        raise ValueError(f"{describe(unit)} is {unit.state}, and was to be taken back from {unit.worker}")
    return count_failure(unit, f"its worker was lost: {unit.worker}", policy)


def is_same_lease(unit: Leasable, held: Leasable) -> bool:
    """Whether a unit is still leased as a worker has it, though perhaps for another time."""
    return unit.state is JobState.LEASED and lease_of(unit) == lease_of(held)


def lease_of(unit: Leasable) -> tuple[Hashable, int, str]:
    """What tells leases apart."""
    return unit.key, unit.epoch, unit.worker


def describe(unit: Leasable) -> str:
    """A unit, in a message."""
    return f"{unit.name}, {unit.detail}," if unit.detail else unit.name


def _require_held(unit: Leasable, held: Leasable) -> None:
    if not is_same_lease(unit, held):
        raise LeaseLost(
            f"{describe(held)} is no longer leased to {held.worker} under epoch {held.epoch}: it is {unit.state} under"
            f" epoch {unit.epoch}"
        )


def count_failure(unit: U, reason: str, policy: LeasePolicy) -> U:
    """A unit that is to be done again, unless it has failed too often by now."""
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
