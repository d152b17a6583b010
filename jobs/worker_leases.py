"""The parts that a worker holds: their leases, and what their attempts have counted so far."""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

import structlog

from strandline.errors import Retryable
from strandline.jobs.board import BulkBoard
from strandline.jobs.counts import AttemptCounts
from strandline.jobs.job_lifecycle import stored_counts
from strandline.jobs.outcome import PartOutcome
from strandline.recovery.lease_keeper import LeaseKeeper
from strandline.store.bulk_jobs import BulkPart

_LOG = structlog.get_logger(__name__)
_Key = tuple[str, str, int]


class WorkerLeases:
    """Those of one worker. While there are any, a thread renews their leases, with what was counted by then."""

    def __init__(self, board: BulkBoard) -> None:
        self._board = board
        self._parts: dict[_Key, BulkPart] = {}
        self._counts: dict[_Key, AttemptCounts] = {}
        self._keeper = self._new_keeper()
        self._renewal = ExitStack()
        # A count that comes late must not outlive the part's lease here.
        self._counting = threading.Lock()

    def __len__(self) -> int:
        return len(self._parts)

    def jobs(self) -> set[str]:
        """The jobs that they are parts of."""
        return {part.job for part in self._parts.values()}

    def take(self, part: BulkPart, leased_at: float) -> None:
        """Hold a part that was leased; `leased_at` is the monotonic time just before."""
        if not self._parts:
            self._keeper = self._new_keeper()
            self._renewal.enter_context(self._keeper.keeping())
        with self._counting:
            self._counts[part.key] = stored_counts(part)
            self._parts[part.key] = part
        self._keeper.take(part, leased_at)

    # These never wait, and may be called by any thread.

    def holds(self, part: BulkPart) -> bool:
        """Whether the part's lease is not lost, as far as is known."""
        return self._keeper.holds(part)

    def remaining_s(self, part: BulkPart) -> float:
        """For how many seconds nobody else can have the part."""
        return self._keeper.remaining_s(part)

    def update_counts(self, part: BulkPart, counts: AttemptCounts) -> None:
        """What an attempt has counted by now. What its row had when it was leased stays part of it."""
        self._keeper.note_progress()
        with self._counting:
            if part.key in self._counts:
                begun = stored_counts(self._parts[part.key])
                self._counts[part.key] = replace(counts, fresh=counts.fresh + begun.fresh)

    def counts_of(self, part: BulkPart) -> AttemptCounts:
        """The newest counts of a part: those of its attempt if it is held here, else those of its row."""
        counts = self._counts.get(part.key)
        return stored_counts(part) if counts is None else counts

    # Each of these ends the lease.

    def finish(self, part: BulkPart, outcome: PartOutcome) -> None:
        """The part is done. Raises `Retryable` if the store does not answer: the part is still held then."""
        counts = replace(self.counts_of(part), total=outcome.counts).to_json()
        self._keeper.finish(part, lambda one: replace(one, counts=counts, outcome=outcome.to_json()))
        self._forget(part)

    def fail(self, part: BulkPart, reason: str) -> None:
        """An attempt at the part has failed."""
        try:
            self._keeper.fail(part, reason, self._counted(part))
        except Retryable as error:
            _LOG.warning("a failure can't be stored", part=part.name, error=str(error))
            self._keeper.release(part, reason)
        self._forget(part)

    def release(self, part: BulkPart, reason: str = "") -> None:
        """The part is left to others."""
        self._keeper.release(part, reason, self._counted(part))
        self._forget(part)

    def release_all(self) -> None:
        """Leave all parts to others."""
        with self._counting:
            self._parts.clear()
            self._counts.clear()
        self._renewal.close()
        self._keeper.release_all()

    def _forget(self, part: BulkPart) -> None:
        with self._counting:
            self._parts.pop(part.key, None)
            self._counts.pop(part.key, None)
        if not self._parts:
            self._renewal.close()

    def _counted(self, part: BulkPart) -> Callable[[BulkPart], BulkPart]:
        counts = self.counts_of(part).to_json()
        return lambda one: replace(one, counts=counts)

    def _new_keeper(self) -> "LeaseKeeper[BulkPart]":
        return LeaseKeeper(self._board, [], amend=lambda one: replace(one, counts=self.counts_of(one).to_json()))
