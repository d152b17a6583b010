"""Keeps leases while the work on their units goes on: a thread renews them, and remembers which were lost."""

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
# How often the thread looks at the clock. The clock itself says when a renewal is due.
_POLL_INTERVAL_S = 0.2
# Of a term, from the beginning of the last renewal on. A watcher waits for a whole term; the rest is for clocks that
# run at different speeds, and for what is under way when it ends.
_SAFE_SHARE: Final = 2 / 3


class LeaseKeeper(Generic[U]):
    """The leases of one wave. May be used by several threads.

    A lease counts as held until the store says otherwise, also past its time: as long as nobody else has taken the
    unit, what was done for it in the store is good. Work outside of the store goes by `remaining_s` instead.
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
        """Leases are no longer renewed once nothing was heard of progress for `max_silence_s`: work that hangs must
        not keep others from its units for ever. `leased_at` is the monotonic time before the first of them was leased:
        `remaining_s` needs it, and is 0 up to the first renewal without it. `amend` puts into each renewal how
        far the work is.
        """
        self._board, self._lock, self._amend = board, threading.Lock(), amend
        self._held = {unit.key: unit for unit in units}
        self._renewed = self._heard = board.clock.monotonic()
        self._max_silence_s = max_silence_s
        self._since: dict[Hashable, float] = {} if leased_at is None else dict.fromkeys(self._held, leased_at)

    def take(self, unit: U, leased_at: float) -> None:
        """Keep one more lease. `leased_at` is the monotonic time before it was leased."""
        with self._lock:
            self._held[unit.key] = unit
            self._since[unit.key] = leased_at

    def holds(self, unit: U) -> bool:
        """Whether a unit is still held, as far as is known. Never waits."""
        # Without the lock, which is held while a renewal waits for the store.
        return unit.key in self._held

    def held(self, units: Sequence[U]) -> list[U]:
        """Those of some units that are still held, as they stand by now."""
        with self._lock:
            found = [self._held.get(unit.key) for unit in units]
        return [unit for unit in found if unit is not None]

    def remaining_s(self, unit: U) -> float:
        """For how many seconds nobody else can have a unit: until two thirds of a term after its last renewal began. 0
        once its lease is lost.
        """
        # Without the lock, which is held while a renewal waits for the store.
        since = self._since.get(unit.key)
        if since is None:
            return 0.0
        safe_s = _SAFE_SHARE * self._board.policy.lease_ms / 1000
        return max(0.0, since + safe_s - self._board.clock.monotonic())

    def note_progress(self) -> None:
        """The work gets on."""
        self._heard = self._board.clock.monotonic()

    def renew_if_due(self) -> None:
        """Renew all leases once the time for it has come. One that could not be renewed is tried again next time; what
        counts in the end is whether it can be finished.
        """
        now = self._board.clock.monotonic()
        if now - self._renewed < self._board.policy.renew_ms / 1000:
            return
        self._renewed = now
        if now - self._heard >= self._max_silence_s:
            _LOG.warning("the work stands still; its leases are left to run out", silent_s=round(now - self._heard))
            return
        with self._lock:
            for unit in list(self._held.values()):
                self._renew(unit)

    def finish(self, unit: U, amend: Callable[[U], U] = unchanged) -> bool:
        """Mark a unit as done; False if its lease was lost."""
        with self._lock:
            held = self._held.get(unit.key)
            is_done = held is not None and self._board.finish(held, amend)
            # Only now: where the store could not be reached the lease is still ours.
            self._forget(unit)
        return is_done

    def fail(self, unit: U, reason: str, amend: Callable[[U], U] = unchanged) -> bool:
        """Count a failure of a unit; False if its lease was lost."""
        with self._lock:
            held = self._held.get(unit.key)
            is_told = held is not None and self._board.fail(held, reason, amend) is not None
            self._forget(unit)
        return is_told

    def release(self, unit: U, reason: str = "", amend: Callable[[U], U] = unchanged) -> None:
        """Leave a unit to others. Where the store does not answer, its lease runs out."""
        with self._lock:
            held = self._held.get(unit.key)
            self._forget(unit)
        if held is not None:
            self._release(held, reason, amend)

    def release_all(self, reason: str = "") -> None:
        """Leave all that is held to others. What can't be told to the store runs out."""
        with self._lock:
            held = list(self._held.values())
            self._held.clear()
            self._since.clear()
        for unit in held:
            self._release(unit, reason, unchanged)

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Renew from a thread of its own meanwhile."""
        over = threading.Event()

        def keep() -> None:
            while not over.wait(_POLL_INTERVAL_S):
                self.renew_if_due()

        thread = threading.Thread(target=keep, name="lease-keeper", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _renew(self, unit: U) -> None:
        begun = self._board.clock.monotonic()
        try:
            renewed = self._board.renew(unit, self._amend)
        except StrandlineError as error:
            _LOG.warning("a lease could not be renewed", job=describe(unit), error=str(error))
            return
        if renewed is None:
            _LOG.warning("a lease is lost", job=describe(unit), worker=unit.worker, epoch=unit.epoch)
            self._forget(unit)
        else:
            self._held[unit.key] = renewed
            self._since[unit.key] = begun

    def _release(self, held: U, reason: str, amend: Callable[[U], U]) -> None:
        try:
            self._board.release(held, reason, amend)
        except StrandlineError as error:
            _LOG.warning("a lease could not be given back", job=describe(held), error=str(error))

    def _forget(self, unit: U) -> None:
        self._held.pop(unit.key, None)
        self._since.pop(unit.key, None)
