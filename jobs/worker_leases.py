"""The parts that a worker has leased, and the counts of their attempts so far."""

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
    """The leases of one worker. While there are any, a thread renews them, and stores the counts with each renewal."""

    def __init__(self, board: BulkBoard) -> None:
        self._board = board
        self._parts: dict[_Key, BulkPart] = {}
        self._counts: dict[_Key, AttemptCounts] = {}
        self._keeper = self._new_keeper()
        self._renewal = ExitStack()
        # Protects both dictionaries: a late count must not be stored after its part was removed.
        self._counting = threading.Lock()

    def __len__(self) -> int:
        return len(self._parts)

    def jobs(self) -> set[str]:
        """The jobs of the leased parts."""
        return {part.job for part in self._parts.values()}

    def add(self, part: BulkPart, leased_at: float) -> None:
        """Add a part that was leased; `leased_at` is the monotonic time just before."""
        if not self._parts:
            self._keeper = self._new_keeper()
            self._renewal.enter_context(self._keeper.keeping())
        with self._counting:
            self._counts[part.key] = stored_counts(part)
            self._parts[part.key] = part
        self._keeper.take(part, leased_at)

    # These never block, and may be called by any thread.

    def holds(self, part: BulkPart) -> bool:
        """Whether the part's lease is still valid, as far as this process knows."""
        return self._keeper.holds(part)

    def remaining_s(self, part: BulkPart) -> float:
        """For how many seconds no other worker can lease the part."""
        return self._keeper.remaining_s(part)

    def update_counts(self, part: BulkPart, counts: AttemptCounts) -> None:
        """Set the counts of an attempt so far. The fresh counts that the row had when it was leased are added."""
        self._keeper.note_progress()
        with self._counting:
            if part.key in self._counts:
                begun = stored_counts(self._parts[part.key])
                self._counts[part.key] = replace(counts, fresh=counts.fresh + begun.fresh)

    def counts_of(self, part: BulkPart) -> AttemptCounts:
        """The newest counts of a part: those of its attempt if it is leased here, else those of its row."""
        counts = self._counts.get(part.key)
        return stored_counts(part) if counts is None else counts

    # Each of these ends the lease.

    def finish(self, part: BulkPart, outcome: PartOutcome) -> None:
        """Mark the part as done. Raises `Retryable`, and keeps the lease, if the store does not answer."""
        counts = replace(self.counts_of(part), total=outcome.counts).to_json()
        self._keeper.finish(part, lambda one: replace(one, counts=counts, outcome=outcome.to_json()))
        self._forget(part)

    def fail(self, part: BulkPart, reason: str) -> None:
        """Count a failed attempt at the part."""
        try:
            self._keeper.fail(part, reason, self._counted(part))
        except Retryable as error:
            _LOG.warning("failure of a part not stored", part=part.name, error=str(error))
            self._keeper.release(part, reason)
        self._forget(part)

    def release(self, part: BulkPart, reason: str = "") -> None:
        """Release the part, so that any worker can lease it."""
        self._keeper.release(part, reason, self._counted(part))
        self._forget(part)

    def release_all(self) -> None:
        """Release all parts."""
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
