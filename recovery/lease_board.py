"""Leases in the store: every transition is one compare-and-set, so that workers meet only there.

Whoever comes second in a race is told so by None or False. What raises is the store itself, where it can't be reached.
A change whose answer was missed is found out by looking: a lease that is still the caller's is the caller's, whatever
time it has by now.
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
"""So often a change is tried again that another worker came before. Each time, that worker got on."""


def unchanged(unit: U) -> U:
    """An amendment that changes nothing."""
    return unit


class LeaseBoard(ABC, Generic[U]):
    """The leases of one table. May be used by several threads and processes at once; of those of one board, one takes
    lost leases back.

    `amend` gives a unit as it is to be stored, from the one that a transition has made: for fields that say how far
    the work is. It must leave the fields of the lease alone. It may be called several times.
    """

    def __init__(
        self,
        clock: Clock,
        policy: LeasePolicy | None = None,
        is_gone: Callable[[str], bool] = never_gone,
    ) -> None:
        """`is_gone` tells of a worker whether its process is known to be dead; it may always say no."""
        self.clock, self.is_gone = clock, is_gone
        self.policy = policy or LeasePolicy()
        self._watch = HeartbeatWatch(clock, self.policy.lease_ms / 1000)

    @abstractmethod
    def current(self, unit: U) -> U | None:
        """What is in a unit's place in the store, by a serial read."""

    @abstractmethod
    def replace(self, before: U, after: U) -> bool:
        """Put `after` in the place of `before`, if that is still as it was."""

    def reclaim(self, units: Iterable[U]) -> bool:
        """Take leases back whose worker is gone, or has not renewed them for a whole term while this board looked,
        again and again; whether units may have changed. No wall clock counts.
        """
        is_changed = False
        for unit in units:
            if unit.state is not JobState.LEASED:
                self._watch.forget(unit.key)
            elif self._watch.is_expired(unit.key, heartbeat_of(unit)) or self.is_gone(unit.worker):
                is_changed = True
                if self.replace(unit, reclaim(unit, self.policy)):
                    _LOG.warning("a lease was lost", job=describe(unit), worker=unit.worker, epoch=unit.epoch)
        return is_changed

    def lease(self, unit: U, worker: str, amend: Callable[[U], U] = unchanged) -> U | None:
        """Take a pending unit; None if another worker has it."""
        if not is_leasable(unit):
            return None
        leased = amend(lease(unit, worker, self.clock.now_ms(), self.policy))
        return leased if self.replace(unit, leased) else None

    def renew(self, held: U, amend: Callable[[U], U] = unchanged) -> U | None:
        """Keep a unit for longer: as it is then, or None if the lease is lost."""
        return self._change(held, lambda unit: amend(renew(unit, held, self.clock.now_ms(), self.policy)))

    def finish(self, held: U, amend: Callable[[U], U] = unchanged) -> bool:
        """Mark a unit as done; False if the lease is lost, and so what was done does not count."""
        return self._change(held, lambda unit: amend(finish(unit, held))) is not None

    def fail(self, held: U, reason: str, amend: Callable[[U], U] = unchanged) -> U | None:
        """Count a failure of a unit: as it is then, pending or failed for good, or None if the lease is lost."""
        return self._change(held, lambda unit: amend(fail(unit, held, reason, self.policy)))

    def release(self, held: U, reason: str = "", amend: Callable[[U], U] = unchanged) -> bool:
        """Leave a unit to others; False if the lease is lost."""
        return self._change(held, lambda unit: amend(release(unit, held, reason))) is not None

    def _change(self, held: U, transition: Callable[[U], U]) -> U | None:
        """Apply a transition to a unit that the caller holds."""
        unit: U | None = held
        for _ in range(MAX_TRIES):
            if unit is None:
                return None
            after = transition(unit)
            if self.replace(unit, after):
                return after
            # Another time on it, by a renewal whose answer was missed: still ours. Or what we wanted is there already.
            found = self.current(held)
            if found is not None and found.state is after.state is JobState.DONE and lease_of(found) == lease_of(held):
                return found
            unit = found if found is not None and is_same_lease(found, held) else None
        return None
