"""Leases in the store. Every transition is one compare-and-set, so workers need no other coordination.

A caller that loses a race gets None or False. Only errors of the store itself are raised. If the response to a change
was lost, the board reads the row: a lease with the caller's epoch and worker is the caller's, even if its expiry time
differs.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import structlog

from strandline.clock import Clock
from strandline.recovery.heartbeat_watch import HeartbeatWatch
from strandline.recovery.leasing import (
    LeasePolicy,
    describe,
    fail,
    finish,
    heartbeat_of,
    is_leasable,
    is_same_lease,
    lease,
    lease_of,
    never_gone,
    reclaim,
    release,
    renew,
)
from strandline.store.jobs import JobState
from strandline.store.leasable import Leasable

U = TypeVar("U", bound=Leasable)

_LOG = structlog.get_logger(__name__)
MAX_TRIES = 20
"""A change that loses the race against another worker is tried this many times. Each lost race means that the other
worker made progress.
"""


def unchanged(unit: U) -> U:
    """An amendment that changes nothing."""
    return unit


class LeaseBoard(ABC, Generic[U]):
    """The leases of one table. Several threads and processes may use it at the same time, but only one thread of a
    board may reclaim lost leases.

    `amend` receives the unit after a transition and returns the unit to store, for fields that record the progress of
    the work. It must not change the fields of the lease, and may be called several times.
    """

    def __init__(
        self,
        clock: Clock,
        policy: LeasePolicy | None = None,
        is_gone: Callable[[str], bool] = never_gone,
    ) -> None:
        """`is_gone` returns whether the process of a worker is known to be dead; it may always return False."""
        self.clock, self.is_gone = clock, is_gone
        self.policy = policy or LeasePolicy()
        self._watch = HeartbeatWatch(clock, self.policy.lease_ms / 1000)

    @abstractmethod
    def current(self, unit: U) -> U | None:
        """The stored row for the same unit, by a serial read."""

    @abstractmethod
    def replace(self, before: U, after: U) -> bool:
        """Replace `before` by `after` if `before` is still what is stored (compare-and-set)."""

    def reclaim(self, units: Iterable[U]) -> bool:
        """Reclaim leases whose worker is dead, or has not renewed them for a full term while this board watched; return
        whether units may have changed. No wall clock is compared.
        """
        is_changed = False
        for unit in units:
            if unit.state is not JobState.LEASED:
                self._watch.forget(unit.key)
            elif self._watch.is_expired(unit.key, heartbeat_of(unit)) or self.is_gone(unit.worker):
                is_changed = True
                if self.replace(unit, reclaim(unit, self.policy)):
                    _LOG.warning("reclaimed a lost lease", job=describe(unit), worker=unit.worker, epoch=unit.epoch)
        return is_changed

    def lease(self, unit: U, worker: str, amend: Callable[[U], U] = unchanged) -> U | None:
        """Lease a pending unit; None if another worker has it."""
        if not is_leasable(unit):
            return None
        leased = amend(lease(unit, worker, self.clock.now_ms(), self.policy))
        return leased if self.replace(unit, leased) else None

    def renew(self, held: U, amend: Callable[[U], U] = unchanged) -> U | None:
        """Extend a lease: the renewed unit, or None if the lease is lost."""
        return self._change(held, lambda unit: amend(renew(unit, held, self.clock.now_ms(), self.policy)))

    def finish(self, held: U, amend: Callable[[U], U] = unchanged) -> bool:
        """Mark a unit as done; False if the lease is lost, so the work does not count."""
        return self._change(held, lambda unit: amend(finish(unit, held))) is not None

    def fail(self, held: U, reason: str, amend: Callable[[U], U] = unchanged) -> U | None:
        """Count a failure of a unit: the unit, now pending or permanently failed, or None if the lease is lost."""
        return self._change(held, lambda unit: amend(fail(unit, held, reason, self.policy)))

    def release(self, held: U, reason: str = "", amend: Callable[[U], U] = unchanged) -> bool:
        """Return a unit to the other workers; False if the lease is lost."""
        return self._change(held, lambda unit: amend(release(unit, held, reason))) is not None

    def _change(self, held: U, transition: Callable[[U], U]) -> U | None:
        """Apply a transition to a unit that the caller has leased."""
        unit: U | None = held
        for _ in range(MAX_TRIES):
            if unit is None:
                return None
            after = transition(unit)
            if self.replace(unit, after):
                return after
            # A renewal whose response was lost has changed the expiry time: the lease is still ours. Or the response to
            # this very transition was lost, and it is stored already.
            found = self.current(held)
            if found is not None and found.state is after.state is JobState.DONE and lease_of(found) == lease_of(held):
                return found
            unit = found if found is not None and is_same_lease(found, held) else None
        return None
