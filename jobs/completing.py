"""The end of a job: control sample, event and report.

Several workers may do this concurrently for one job, and repeat it after a crash: all of them write the same bytes
under the same names, to temporary files that they rename, and the compare-and-set in the store accepts the report of
one of them. So there is one event file and one change of state. The webhook is called at least once, with a key for
each event.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Protocol

import orjson
import structlog

from strandline.clock import Clock
from strandline.errors import Retryable, StrandlineError
from strandline.jobs.control_list import control_csv
from strandline.jobs.counts import Counts, landed_of
from strandline.jobs.landing.progress import PartIdentity
from strandline.jobs.outcome import PartOutcome
from strandline.jobs.part_fencing import identity_of
from strandline.jobs.report import JobReport, job_report
from strandline.jobs.transitions import announced, complete
from strandline.recovery.failure_tracking import Backoff
from strandline.store.bulk_jobs import BulkJob, BulkJobState, BulkPart

_LOG = structlog.get_logger(__name__)

WEBHOOK_RETRY_MS: Final = 10 * 60_000
"""For how long after the end of a job its webhook is retried."""


class EventNotDelivered(Retryable):
    """A webhook has not accepted an event."""


class EventNotWritten(Retryable):
    """The event file or the control sample of a job can't be written."""


CallWebhook = Callable[[str, bytes], None]
"""Posts an event with its key to the webhook. Raises `EventNotDelivered`."""


class DeletesGroups(Protocol):
    """The part of `PartLog` that is needed here."""

    def delete_group(self, part: PartIdentity) -> None: ...


@dataclass(frozen=True, slots=True)
class CompletionEvent:
    """The JSON that announces the end of a job. `completed_at` is when a worker saw the last part done, or when the job
    failed or was cancelled. `counts` cover everything that has landed, `bad` only parts that are done.
    """

    event: str
    key: str
    dataset: str
    job: str
    kind: str
    state: str
    reason: str
    completed_at: int
    parts: int
    counts: dict[str, int]
    bad: dict[str, int]
    control_file: str

    @classmethod
    def of(
        cls, job: BulkJob, parts: Sequence[BulkPart], report: JobReport, control_file: str = ""
    ) -> "CompletionEvent":
        """The event of a job that is completing, failed or cancelled: equal for all workers."""
        is_done = job.state is BulkJobState.COMPLETING
        state = BulkJobState.DONE if is_done else job.state
        return cls(
            f"job.{state}",
            # A resumed job may fail again, or be done: these are other events, with other keys.
            job.job if is_done else f"{job.job}.{state}.{job.window}",
            job.dataset,
            job.job,
            job.kind,
            state,
            job.reason,
            job.changed_at,
            job.parts,
            asdict(Counts.total(map(landed_of, parts))),
            report.bad,
            control_file,
        )

    @property
    def file_name(self) -> str:
        """The name of the event file."""
        return f"{self.job}.json" if self.state == BulkJobState.DONE else f"{self.job}.{self.state}.json"

    def to_json(self) -> bytes:
        """The content of the file, and the body for the webhook."""
        return orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)


class Completion:
    """Completes the jobs of one worker, and announces those that failed or were cancelled. For one thread."""

    def __init__(self, clock: Clock, folder: Path | None = None, webhook: CallWebhook | None = None) -> None:
        """`folder` gets the files, and `webhook` the events. Either may be missing."""
        self._clock, self._folder, self._webhook = clock, folder, webhook
        self._pauses: dict[str, Backoff] = {}

    def finish(self, job: BulkJob, parts: Sequence[BulkPart], *, has_control: bool = False) -> BulkJob:
        """Write control sample and event of a completing job. Returns it as done; unchanged if something can't be
        written or delivered yet, so that this worker or another retries it later.
        """
        report = job_report(parts)

        def event() -> CompletionEvent:
            return CompletionEvent.of(job, parts, report, self._write_control(job, parts) if has_control else "")

        undelivered = self._deliver(job, event)
        if undelivered is None:
            return job
        return complete(job, report.to_json(), self._clock.now_ms(), reason=undelivered)

    def announce(self, job: BulkJob, parts: Sequence[BulkPart]) -> BulkJob:
        """Write the event of a failed or cancelled job. Returns it with its report; unchanged if the event can't be
        written or delivered yet, as in `finish`.
        """
        report = job_report(parts)
        undelivered = self._deliver(job, lambda: CompletionEvent.of(job, parts, report))
        return job if undelivered is None else announced(job, report.to_json(), undelivered=undelivered)

    def _deliver(self, job: BulkJob, make_event: Callable[[], CompletionEvent]) -> str | None:
        """Deliver an event. Returns what was given up, empty if nothing; None if it must be retried later."""
        pause = self._pauses.setdefault(job.job, Backoff(self._clock))
        if not pause.is_over:
            return None
        undelivered = ""
        try:
            event = make_event()
            if self._folder is not None:
                write_atomically(self._folder / event.file_name, event.to_json())
            if self._webhook is not None:
                self._webhook(event.key, event.to_json())
        except EventNotDelivered as error:
            if self._clock.now_ms() - job.changed_at < WEBHOOK_RETRY_MS:
                return self._retry_later(job, pause, error)
            _LOG.warning("webhook call failed, not retried any longer", job=job.job, error=str(error))
            undelivered = f"its webhook was not called: {error.message}"
        except EventNotWritten as error:
            return self._retry_later(job, pause, error)
        del self._pauses[job.job]
        return undelivered

    def _write_control(self, job: BulkJob, parts: Sequence[BulkPart]) -> str:
        if self._folder is None:
            raise EventNotWritten(
                f"the control sample of {job.name} can't be written: jobs.events_folder is not set on this worker",
                remedy="Set jobs.events_folder",
            )
        name = f"{job.job}.control.csv"
        write_atomically(
            self._folder / name, control_csv(PartOutcome.from_json(part.outcome).control for part in parts)
        )
        return name

    @staticmethod
    def _retry_later(job: BulkJob, pause: Backoff, error: StrandlineError) -> None:
        _LOG.warning("event of a job not delivered, retried later", job=job.job, error=str(error))
        pause.begin()


def write_atomically(path: Path, content: bytes) -> None:
    """Write and fsync a temporary file, then rename it: readers see all of the content or nothing. Raises
    `EventNotWritten`.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise EventNotWritten(
            f"{path} can't be written: {error.strerror or error}", remedy="Check jobs.events_folder and its disk"
        ) from error


def delete_groups(log: DeletesGroups, job: BulkJob, parts: Sequence[BulkPart]) -> None:
    """Delete the consumer groups of a job's parts, all of which are done in the store."""
    for part in parts:
        try:
            log.delete_group(identity_of(part))
        except StrandlineError as error:
            # For example for lack of permission. The offsets expire by themselves.
            _LOG.warning("consumer groups of a job not deleted", job=job.job, error=str(error))
            return
