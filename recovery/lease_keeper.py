"""Keeps leases while the work on their jobs goes on: a thread renews them, and remembers which were lost."""

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import structlog

from strandline.errors import StrandlineError
from strandline.recovery.job_board import JobBoard
from strandline.recovery.leasing import told
from strandline.store.jobs import Job
from strandline.store.rows import ShardId

_LOG = structlog.get_logger(__name__)
# How often the thread looks at the clock. The clock itself says when a renewal is due.
_LOOK_S = 0.2


class LeaseKeeper:
    """The leases of one wave. May be used by several threads.

    A lease counts as held until the store says otherwise, also past its time: as long as nobody else has taken the job,
    what was done for it is good.
    """

    def __init__(self, board: JobBoard, jobs: Sequence[Job], *, most_silence_s: float = math.inf) -> None:
        """Leases are no longer renewed once nothing was heard of progress for `most_silence_s`: work that hangs must
        not keep others from its jobs for ever.
        """
        self._board, self._lock = board, threading.Lock()
        self._held = {_key(job): job for job in jobs}
        self._renewed = self._heard = board.clock.monotonic()
        self._most_silence_s = most_silence_s

    def held(self, jobs: Sequence[Job]) -> list[Job]:
        """Those of some jobs that are still held, as they stand by now."""
        with self._lock:
            found = [self._held.get(_key(job)) for job in jobs]
        return [job for job in found if job is not None]

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
        if now - self._heard >= self._most_silence_s:
            _LOG.warning("the work stands still; its leases are left to run out", silent_s=round(now - self._heard))
            return
        with self._lock:
            for key, job in list(self._held.items()):
                try:
                    renewed = self._board.renew(job)
                except StrandlineError as error:
                    _LOG.warning("a lease could not be renewed", job=told(job), error=str(error))
                    continue
                if renewed is None:
                    _LOG.warning("a lease is lost", job=told(job), worker=job.worker, epoch=job.epoch)
                    del self._held[key]
                else:
                    self._held[key] = renewed

    def finish(self, job: Job) -> bool:
        """Say that a job is done; False if its lease was lost."""
        with self._lock:
            held = self._held.get(_key(job))
            is_done = held is not None and self._board.finish(held)
            # Only now: where the store could not be reached the lease is still ours.
            self._held.pop(_key(job), None)
        return is_done

    def fail(self, job: Job, reason: str) -> bool:
        """Say that a job has failed; False if its lease was lost."""
        with self._lock:
            held = self._held.get(_key(job))
            is_told = held is not None and self._board.fail(held, reason) is not None
            self._held.pop(_key(job), None)
        return is_told

    def release_all(self, reason: str = "") -> None:
        """Leave all that is held to others. What can't be told to the store runs out."""
        with self._lock:
            held = list(self._held.values())
            self._held.clear()
        for job in held:
            try:
                self._board.release(job, reason)
            except StrandlineError as error:
                _LOG.warning("a lease could not be given back", job=told(job), error=str(error))

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Renew from a thread of its own meanwhile."""
        over = threading.Event()

        def keep() -> None:
            while not over.wait(_LOOK_S):
                self.renew_if_due()

        thread = threading.Thread(target=keep, name="lease-keeper", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _key(job: Job) -> tuple[ShardId, int]:
    return job.shard, job.bucket
