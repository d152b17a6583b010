"""Sends as a kind of job: running, fencing and completing them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext

from strandline.clock import Clock
from strandline.jobs.completing import Completion, delete_groups
from strandline.jobs.landing.part_log import PartLog
from strandline.jobs.outcome import PartOutcome
from strandline.jobs.part_fencing import begin_part, fence_part, retry_when_fenced
from strandline.jobs.running import FencePart, RunningPart
from strandline.jobs.sending.part_send import SendHooks, send_part
from strandline.jobs.sending.series import SeriesSource
from strandline.jobs.sending.spec import HashRange, SendSpec
from strandline.store.bulk_jobs import BulkJob, BulkPart

SEND = "send"


class SendKind:
    """The `JobKind` of sends."""

    def __init__(
        self,
        open_log: Callable[[str], PartLog],
        source: SeriesSource,
        clock: Clock,
        completion: Completion,
        shared_logs: Callable[[str], AbstractContextManager[Callable[[], PartLog]]] | None = None,
    ) -> None:
        """`open_log` opens the part log of a topic; `shared_logs` opens the logs of many parts at a lower cost."""
        self._open_log, self._source, self._clock, self._completion = open_log, source, clock, completion
        self._shared_logs = shared_logs or (lambda topic: nullcontext(lambda: open_log(topic)))

    def run(self, running: RunningPart) -> PartOutcome:
        """Send the series of a part that have not been sent yet."""
        spec, part = SendSpec.from_json(running.job.spec), HashRange.from_json(running.part.source)
        hooks = SendHooks(running.deadline, running.pace, running.report, running.report_rejected)
        with retry_when_fenced(), closing(self._open_log(spec.topic)) as log:
            return send_part(spec, part, self._source, log, begin_part(log, running), hooks=hooks)

    @contextmanager
    def fencing(self, job: BulkJob) -> Iterator[FencePart]:
        """Fences parts by becoming their holder in Kafka."""
        with self._shared_logs(SendSpec.from_json(job.spec).topic) as open_log:
            yield lambda part: fence_part(open_log, job, part, self._clock)

    def complete(self, job: BulkJob, parts: Sequence[BulkPart]) -> BulkJob:
        """Complete the job, then delete the consumer groups of its parts."""
        spec = SendSpec.from_json(job.spec)
        done = self._completion.finish(job, parts, has_control=spec.control.fraction > 0)
        if done != job:
            with closing(self._open_log(spec.topic)) as log:
                delete_groups(log, job, parts)
        return done

    def announce(self, job: BulkJob, parts: Sequence[BulkPart]) -> BulkJob:
        """Write the event of the job, and add its report."""
        return self._completion.announce(job, parts)
