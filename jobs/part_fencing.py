"""Becoming the holder of a part in Kafka, which fences all others: to land its records, or to stop it."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Final

from strandline.clock import Clock
from strandline.errors import Retryable
from strandline.jobs.counts import Counts
from strandline.jobs.landing.part_log import OffsetExpired, PartLog
from strandline.jobs.landing.progress import Landed, PartIdentity
from strandline.jobs.landing.transactions import PartFenced
from strandline.jobs.running import RunningPart
from strandline.store.bulk_jobs import BulkJob, BulkPart

_FENCE_S: Final = 30.0


class LandingInterrupted(Retryable):
    """The brokers have fenced the holder of a part. The part is started again, and continues after what has landed."""


def identity_of(part: BulkPart) -> PartIdentity:
    """The identity of the part in Kafka."""
    return PartIdentity(part.dataset, part.job, part.part)


def begin_part(log: PartLog, running: RunningPart) -> Landed:
    """Become the holder of a leased part, then confirm the lease. Returns what has landed."""
    landed = log.begin(identity_of(running.part), first_begun_ms=running.first_begun_ms, deadline=running.deadline())
    running.confirm()
    return landed


def fence_part(open_log: Callable[[], PartLog], job: BulkJob, part: BulkPart, clock: Clock) -> Counts | None:
    """Become the part's holder, so that no other worker's chunks land. Returns what has landed, if that is known."""
    try:
        with closing(open_log()) as log:
            landed = log.begin(identity_of(part), first_begun_ms=job.created_at, deadline=clock.monotonic() + _FENCE_S)
    except OffsetExpired:
        # The part is fenced nevertheless, and must not be sent again.
        return None
    return Counts(*landed.progress.counts)


@contextmanager
def retry_when_fenced() -> Iterator[None]:
    """Raises `LandingInterrupted` instead of `PartFenced`, because this worker may still have the lease."""
    try:
        yield
    except PartFenced as fenced:
        raise LandingInterrupted(fenced.message, remedy="None needed: the part is retried") from fenced
