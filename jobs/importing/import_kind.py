"""Imports as a kind of job: what a worker does with a part of one, and with one whose parts are all done."""

from collections.abc import Callable, Sequence
from contextlib import closing

from strandline.clock import Clock
from strandline.errors import Retryable
from strandline.jobs.completing import Completion, forget_parts
from strandline.jobs.counts import Counts
from strandline.jobs.importing.part_import import PartHooks, run_part
from strandline.jobs.importing.part_sources import chunks_of, part_source, require_same_files
from strandline.jobs.importing.spec import ImportSpec
from strandline.jobs.landing.part_log import OffsetExpired, PartLog
from strandline.jobs.landing.progress import PartIdentity
from strandline.jobs.landing.transactions import PartLost
from strandline.jobs.outcome import PartOutcome
from strandline.jobs.running import RunningPart
from strandline.store.bulk_jobs import BulkJob, BulkPart

IMPORT = "import"
_FENCE_S = 30.0


class LandingInterrupted(Retryable):
    """The brokers have ended a worker's hold of a part. The part is begun again, and goes on behind what has landed."""


class ImportKind:
    """The `JobKind` of imports."""

    def __init__(self, open_log: Callable[[], PartLog], clock: Clock, completion: Completion | None = None) -> None:
        """Without a `completion` the end of a job is its report alone."""
        self._open_log, self._clock = open_log, clock
        self._completion = completion or Completion(clock)

    def run(self, running: RunningPart) -> PartOutcome:
        """Import a part. What has landed of it before stays, and is not sent again."""
        spec, source = ImportSpec.from_json(running.job.spec), part_source(running.part.source)

        def before_landing(samples: int) -> None:
            running.pace(samples)
            require_same_files(source)

        hooks = PartHooks(running.deadline, before_landing, running.report, running.note)
        try:
            with closing(self._open_log()) as log, chunks_of(source, spec) as chunks:
                identity = _identity(running.part)
                landed = log.begin(identity, first_begun_ms=running.first_begun_ms, deadline=running.deadline())
                running.confirm()
                return run_part(chunks, landed, log, spec.times, hooks)
        except PartLost as lost:
            raise LandingInterrupted(lost.message, remedy="It is tried again by itself") from lost

    def fence(self, job: BulkJob, part: BulkPart) -> Counts | None:
        """Become the part's holder, so that nobody else's chunks land; what has landed of it, if that is known."""
        with closing(self._open_log()) as log:
            deadline = self._clock.monotonic() + _FENCE_S
            try:
                landed = log.begin(_identity(part), first_begun_ms=job.created_at, deadline=deadline)
            except OffsetExpired:
                # It is held all the same, and is not to be sent again.
                return None
        return Counts(*landed.progress.counts)

    def complete(self, job: BulkJob, parts: Sequence[BulkPart]) -> BulkJob:
        """The job with its report. The brokers may forget its parts: all of them are done in the store."""
        done = self._completion.finish(job, parts)
        if done != job:
            with closing(self._open_log()) as log:
                forget_parts(log, job, parts)
        return done


def _identity(part: BulkPart) -> PartIdentity:
    return PartIdentity(part.dataset, part.job, part.part)
