"""Keeps leases while work on their units continues: a thread renews them and records which ones were lost."""

import math
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Generic, TypeVar

import structlog

from strandline.errors import StrandlineError
from strandline.recovery.lease_board import LeaseBoard, unchanged
from strandline.recovery.leasing import describe
from strandline.store.leasable import Leasable

U = TypeVar("U", bound=Leasable)

_LOG = structlog.get_logger(__name__)
# How often the thread checks whether a renewal is due.
_POLL_INTERVAL_S = 0.2
# Share of a term, counted from the start of the last renewal. Watchers wait for a full term; the rest allows for clocks
# that run at different speeds, and for operations in flight when it ends.
_SAFE_SHARE: Final = 2 / 3


class LeaseKeeper(Generic[U]):
    """The leases of one wave. Several threads may use it.

    A lease counts as held until the store says otherwise, even after its expiry time: as long as no other worker has
    taken the unit, work that was written to the store under it is valid. Work outside of the store must use
    `remaining_s` instead.
    """

    def __init__(
        self,
        board: LeaseBoard[U],
        units: Sequence[U],
        *,
        max_silence_s: float = math.inf,
        leased_at: float | None = None,
        amend: Callable[[U], U] = unchanged,
    ) -> None:
        """Leases are no longer renewed once no progress was reported for `max_silence_s`, so that hung work does not
        block its units forever. `leased_at` is the monotonic time before the first unit was leased. Without it,
        `remaining_s` is 0 until the first renewal. `amend` adds the progress of the work to each renewal.
        """
        self._board, self._lock, self._amend = board, threading.Lock(), amend
        self._held = {unit.key: unit for unit in units}
        self._renewed = self._last_progress = board.clock.monotonic()
        self._max_silence_s = max_silence_s
        self._since: dict[Hashable, float] = {} if leased_at is None else dict.fromkeys(self._held, leased_at)

    def take(self, unit: U, leased_at: float) -> None:
        """Keep another lease. `leased_at` is the monotonic time before it was leased."""
        with self._lock:
            self._held[unit.key] = unit
            self._since[unit.key] = leased_at

    def holds(self, unit: U) -> bool:
        """Whether a unit is still held, as far as is known. Never blocks."""
        # Without the lock, because renewals hold it while they wait for the store.
        return unit.key in self._held

    def held(self, units: Sequence[U]) -> list[U]:
        """Those of `units` that are still held, as last renewed."""
        with self._lock:
            found = [self._held.get(unit.key) for unit in units]
        return [unit for unit in found if unit is not None]

    def remaining_s(self, unit: U) -> float:
        """For how many seconds no other worker can take a unit: until two thirds of a term after its last renewal
        started. 0 once the lease is lost.
        """
        # Without the lock, because renewals hold it while they wait for the store.
        since = self._since.get(unit.key)
        if since is None:
            return 0.0
        safe_s = _SAFE_SHARE * self._board.policy.lease_ms / 1000
        return max(0.0, since + safe_s - self._board.clock.monotonic())

    def note_progress(self) -> None:
        """Record that the work made progress."""
        self._last_progress = self._board.clock.monotonic()

    def renew_if_due(self) -> None:
        """Renew all leases if a renewal is due. A renewal that fails is retried at the next one: what matters in the
        end is whether the unit can be finished.
        """
        now = self._board.clock.monotonic()
        if now - self._renewed < self._board.policy.renew_ms / 1000:
            return
        self._renewed = now
        if now - self._last_progress >= self._max_silence_s:
            _LOG.warning(
                "the work makes no progress; its leases are no longer renewed",
                silent_s=round(now - self._last_progress),
            )
            return
        with self._lock:
            for unit in list(self._held.values()):
                self._renew(unit)

    def finish(self, unit: U, amend: Callable[[U], U] = unchanged) -> bool:
        """Mark a unit as done; False if its lease was lost."""
        with self._lock:
            held = self._held.get(unit.key)
            is_done = held is not None and self._board.finish(held, amend)
            # Only after the call: if the store could not be reached, the lease is still ours.
            self._forget(unit)
        return is_done

    def fail(self, unit: U, reason: str, amend: Callable[[U], U] = unchanged) -> bool:
        """Count a failure of a unit; False if its lease was lost."""
        with self._lock:
            held = self._held.get(unit.key)
            is_recorded = held is not None and self._board.fail(held, reason, amend) is not None
            self._forget(unit)
        return is_recorded

    def release(self, unit: U, reason: str = "", amend: Callable[[U], U] = unchanged) -> None:
        """Return a unit to the other workers. If the store does not answer, its lease expires instead."""
        with self._lock:
            held = self._held.get(unit.key)
            self._forget(unit)
        if held is not None:
            self._release(held, reason, amend)

    def release_all(self, reason: str = "") -> None:
        """Return all held units to the other workers. If the store does not answer, their leases expire instead."""
        with self._lock:
            held = list(self._held.values())
            self._held.clear()
            self._since.clear()
        for unit in held:
            self._release(unit, reason, unchanged)

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Renew the leases in a separate thread until the block ends."""
        stopped = threading.Event()

        def keep() -> None:
            while not stopped.wait(_POLL_INTERVAL_S):
                self.renew_if_due()

        thread = threading.Thread(target=keep, name="lease-keeper", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join()

    def _renew(self, unit: U) -> None:
        begun = self._board.clock.monotonic()
        try:
            renewed = self._board.renew(unit, self._amend)
        except StrandlineError as error:
            _LOG.warning("could not renew a lease", job=describe(unit), error=str(error))
            return
        if renewed is None:
            _LOG.warning("lost a lease", job=describe(unit), worker=unit.worker, epoch=unit.epoch)
            self._forget(unit)
        else:
            self._held[unit.key] = renewed
            self._since[unit.key] = begun

    def _release(self, held: U, reason: str, amend: Callable[[U], U]) -> None:
        try:
            self._board.release(held, reason, amend)
        except StrandlineError as error:
            _LOG.warning("could not release a lease", job=describe(held), error=str(error))

    def _forget(self, unit: U) -> None:
        self._held.pop(unit.key, None)
        self._since.pop(unit.key, None)
