"""Holding a part in Kafka: what all kinds of jobs that land records do before, instead of and after landing them."""

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
    """The brokers have ended a worker's hold of a part. The part is begun again, and goes on behind what has landed."""


def identity_of(part: BulkPart) -> PartIdentity:
    """The part as Kafka knows it."""
    return PartIdentity(part.dataset, part.job, part.part)


def begin_part(log: PartLog, running: RunningPart) -> Landed:
    """Become the holder of a part that is leased, and confirm the lease then; what has landed of it."""
    landed = log.begin(identity_of(running.part), first_begun_ms=running.first_begun_ms, deadline=running.deadline())
    running.confirm()
    return landed


def fence_part(open_log: Callable[[], PartLog], job: BulkJob, part: BulkPart, clock: Clock) -> Counts | None:
    """Become the part's holder, so that no other worker's chunks land; what has landed of it, if that is known."""
    try:
        with closing(open_log()) as log:
            landed = log.begin(identity_of(part), first_begun_ms=job.created_at, deadline=clock.monotonic() + _FENCE_S)
    except OffsetExpired:
        # It is held all the same, and is not to be sent again.
        return None
    return Counts(*landed.progress.counts)


@contextmanager
def retry_when_fenced() -> Iterator[None]:
    """Raises `LandingInterrupted` in place of `PartFenced`: the lease may still be this worker's."""
    try:
        yield
    except PartFenced as lost:
        raise LandingInterrupted(lost.message, remedy="It is tried again by itself") from lost
