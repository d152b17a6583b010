"""Sending series as a kind of job: what a worker does with a part of one, and with one whose parts are all done."""

from collections.abc import Callable, Sequence
from contextlib import closing

from strandline.clock import Clock
from strandline.jobs.completing import Completion, forget_parts
from strandline.jobs.counts import Counts
from strandline.jobs.holding import begin_part, fence_part, lost_hold_is_retried
from strandline.jobs.landing.part_log import PartLog
from strandline.jobs.outcome import PartOutcome
from strandline.jobs.running import RunningPart
from strandline.jobs.sending.part_send import SendHooks, send_part
from strandline.jobs.sending.series import SeriesSource
from strandline.jobs.sending.spec import HashRange, SendSpec
from strandline.store.bulk_jobs import BulkJob, BulkPart

SEND = "send"


class SendKind:
    """The `JobKind` of jobs that send series."""

    def __init__(
        self,
        open_log: Callable[[str], PartLog],
        source: SeriesSource,
        clock: Clock,
        completion: Completion,
    ) -> None:
        """`open_log` gives the part log of a topic."""
        self._open_log, self._source, self._clock, self._completion = open_log, source, clock, completion

    def run(self, running: RunningPart) -> PartOutcome:
        """Send the series of a part. What has been sent of it before is not sent again."""
        spec, part = SendSpec.from_json(running.job.spec), HashRange.from_json(running.part.source)
        hooks = SendHooks(running.deadline, running.pace, running.report, running.note)
        with lost_hold_is_retried(), closing(self._open_log(spec.topic)) as log:
            return send_part(spec, part, self._source, log, begin_part(log, running), hooks=hooks)

    def fence(self, job: BulkJob, part: BulkPart) -> Counts | None:
        """Become the part's holder, so that no other worker's chunks land; what has landed of it, if that is known."""
        with closing(self._open_log(SendSpec.from_json(job.spec).topic)) as log:
            return fence_part(log, job, part, self._clock)

    def complete(self, job: BulkJob, parts: Sequence[BulkPart]) -> BulkJob:
        """The job with its report, after its control sample and its event are written."""
        spec = SendSpec.from_json(job.spec)
        done = self._completion.finish(job, parts, has_control=spec.control.fraction > 0)
        if done != job:
            with closing(self._open_log(spec.topic)) as log:
                forget_parts(log, job, parts)
        return done

    def announce(self, job: BulkJob, parts: Sequence[BulkPart]) -> BulkJob:
        """The job with its report, after its event is written."""
        return self._completion.announce(job, parts)
