"""Imports as a kind of job: what a worker does with a part of one, and with one whose parts are all done."""

from collections.abc import Callable, Sequence
from contextlib import closing

import structlog

from strandline.clock import Clock
from strandline.errors import Fatal, Retryable
from strandline.jobs.counts import Counts
from strandline.jobs.importing.part_import import PartHooks, run_part
from strandline.jobs.importing.part_sources import chunks_of, part_source, require_same_files
from strandline.jobs.importing.spec import ImportSpec
from strandline.jobs.landing.part_log import OffsetExpired, PartLog
from strandline.jobs.landing.progress import PartIdentity
from strandline.jobs.landing.transactions import PartLost
from strandline.jobs.outcome import PartOutcome
from strandline.jobs.report import job_report
from strandline.jobs.running import RunningPart
from strandline.jobs.transitions import complete
from strandline.store.bulk_jobs import BulkJob, BulkPart

_LOG = structlog.get_logger(__name__)
IMPORT = "import"
_FENCE_S = 30.0


class LandingInterrupted(Retryable):
    """The brokers have ended a worker's hold of a part. The part is begun again, and goes on behind what has landed."""


class ImportKind:
    """The `JobKind` of imports."""

    def __init__(self, open_log: Callable[[], PartLog], clock: Clock) -> None:
        self._open_log, self._clock = open_log, clock

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
        with closing(self._open_log()) as log:
            for part in parts:
                try:
                    log.forget(_identity(part))
                except Fatal as error:
                    # A missing right, say. They expire by themselves.
                    _LOG.warning("offsets of a job can't be deleted", job=job.job, error=str(error))
                    break
        return complete(job, job_report(parts).to_json(), self._clock.now_ms())


def _identity(part: BulkPart) -> PartIdentity:
    return PartIdentity(part.dataset, part.job, part.part)
