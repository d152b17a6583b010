"""Imports as a kind of job: running, fencing and completing them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext

from strandline.clock import Clock
from strandline.jobs.completing import Completion, delete_groups
from strandline.jobs.importing.part_import import PartHooks, run_part
from strandline.jobs.importing.part_sources import chunks_of, part_source, require_same_files
from strandline.jobs.importing.spec import ImportSpec
from strandline.jobs.landing.part_log import PartLog
from strandline.jobs.outcome import PartOutcome
from strandline.jobs.part_fencing import begin_part, fence_part, retry_when_fenced
from strandline.jobs.running import FencePart, RunningPart
from strandline.store.bulk_jobs import BulkJob, BulkPart

IMPORT = "import"


class ImportKind:
    """The `JobKind` of imports."""

    def __init__(
        self,
        open_log: Callable[[], PartLog],
        clock: Clock,
        completion: Completion | None = None,
        shared_logs: Callable[[], AbstractContextManager[Callable[[], PartLog]]] | None = None,
    ) -> None:
        """Without a `completion`, completing a job only adds its report. `shared_logs` opens the logs of many parts at
        a lower cost than `open_log`.
        """
        self._open_log, self._clock = open_log, clock
        self._completion = completion or Completion(clock)
        self._shared_logs = shared_logs or (lambda: nullcontext(open_log))

    def run(self, running: RunningPart) -> PartOutcome:
        """Import a part. Chunks that have landed before are not sent again."""
        spec, source = ImportSpec.from_json(running.job.spec), part_source(running.part.source)

        def before_landing(samples: int) -> None:
            running.pace(samples)
            require_same_files(source)

        hooks = PartHooks(running.deadline, before_landing, running.report, running.report_rejected)
        with retry_when_fenced(), closing(self._open_log()) as log, chunks_of(source, spec) as chunks:
            return run_part(chunks, begin_part(log, running), log, spec.times, hooks)

    @contextmanager
    def fencing(self, job: BulkJob) -> Iterator[FencePart]:
        """Fences parts by becoming their holder in Kafka."""
        with self._shared_logs() as open_log:
            yield lambda part: fence_part(open_log, job, part, self._clock)

    def complete(self, job: BulkJob, parts: Sequence[BulkPart]) -> BulkJob:
        """Complete the job, then delete the consumer groups of its parts, all of which are done in the store."""
        done = self._completion.finish(job, parts)
        if done != job:
            with closing(self._open_log()) as log:
                delete_groups(log, job, parts)
        return done

    def announce(self, job: BulkJob, parts: Sequence[BulkPart]) -> BulkJob:
        """Write the event of the job, and add its report."""
        return self._completion.announce(job, parts)
