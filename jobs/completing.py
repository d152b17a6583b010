"""The end of a job: its control sample if it is done, its event, its report.

Any number of workers may do this for one job at once, and again after a crash: all of them write the same bytes under
the same names, aside and renamed, and the store's compare-and-set lets one of them give the job its report. So there is
one event file, and one change of state. The webhook is called at least once, with a key that is the event's own.
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
from strandline.jobs.counts import Counts
from strandline.jobs.landing.progress import PartIdentity
from strandline.jobs.outcome import PartOutcome
from strandline.jobs.part_counts import landed_of
from strandline.jobs.part_fencing import identity_of
from strandline.jobs.report import JobReport, job_report
from strandline.jobs.transitions import announced, complete
from strandline.recovery.setbacks import Pause
from strandline.store.bulk_jobs import BulkJob, BulkJobState, BulkPart

_LOG = structlog.get_logger(__name__)

WEBHOOK_RETRY_MS: Final = 10 * 60_000
"""So long after the end of a job its webhook is given up, if it could not be called."""


class EventNotDelivered(Retryable):
    """A webhook did not take an event."""


class EventNotWritten(Retryable):
    """A file that belongs to the end of a job can't be written."""


CallWebhook = Callable[[str, bytes], None]
"""Gives an event, with its key, to the webhook. Raises `EventNotDelivered`."""


class DeletesGroups(Protocol):
    """A part log: see `strandline.jobs.landing.part_log`."""

    def delete_group(self, part: PartIdentity) -> None: ...


@dataclass(frozen=True, slots=True)
class CompletionEvent:
    """What others learn of the end of a job. `completed_at` is when its last part was seen to be done, or when it
    failed or was cancelled. `counts` are those of everything that has landed, `bad` those of parts that are done.
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
        """The same for every worker that sees the job completing, failed or cancelled."""
        is_done = job.state is BulkJobState.COMPLETING
        state = BulkJobState.DONE if is_done else job.state
        return cls(
            f"job.{state}",
            # A job that is resumed may fail again, and may be done then: other events, which need other keys.
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
        """The file of a job that is done is named after the job alone."""
        return f"{self.job}.json" if self.state == BulkJobState.DONE else f"{self.job}.{self.state}.json"

    def to_json(self) -> bytes:
        """As it is written, and sent."""
        return orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)


class Completion:
    """Completes jobs for one worker, and tells of those that failed or were cancelled. For one thread."""

    def __init__(self, clock: Clock, folder: Path | None = None, webhook: CallWebhook | None = None) -> None:
        """Files go into `folder`, if there is one, and events to `webhook`."""
        self._clock, self._folder, self._webhook = clock, folder, webhook
        self._pauses: dict[str, Pause] = {}

    def finish(self, job: BulkJob, parts: Sequence[BulkPart], *, has_control: bool = False) -> BulkJob:
        """Write what belongs to the end of a job: the job as it is then, which is done. While something can't be
        written or delivered the job stays as it is, to be completed by a later step of this worker or of another.
        """
        report = job_report(parts)

        def event() -> CompletionEvent:
            return CompletionEvent.of(job, parts, report, self._write_control(job, parts) if has_control else "")

        undelivered = self._deliver(job, event)
        if undelivered is None:
            return job
        return complete(job, report.to_json(), self._clock.now_ms(), reason=undelivered)

    def announce(self, job: BulkJob, parts: Sequence[BulkPart]) -> BulkJob:
        """Write the event of a job that has failed or was cancelled: the job as it is then, with its report. While the
        event can't be written or delivered the job stays as it is, as in `finish`.
        """
        report = job_report(parts)
        undelivered = self._deliver(job, lambda: CompletionEvent.of(job, parts, report))
        return job if undelivered is None else announced(job, report.to_json(), undelivered=undelivered)

    def _deliver(self, job: BulkJob, make_event: Callable[[], CompletionEvent]) -> str | None:
        """Deliver an event; what could not be delivered and was given up, or None if it is to be tried again later."""
        pause = self._pauses.setdefault(job.job, Pause(self._clock))
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
                return self._later(job, pause, error)
            _LOG.warning("the webhook of a job was given up", job=job.job, error=str(error))
            undelivered = f"its webhook was not called: {error.message}"
        except EventNotWritten as error:
            return self._later(job, pause, error)
        del self._pauses[job.job]
        return undelivered

    def _write_control(self, job: BulkJob, parts: Sequence[BulkPart]) -> str:
        if self._folder is None:
            raise EventNotWritten(
                f"{job.name} has a control sample, and this worker no folder to write it to",
                remedy="Set jobs.events_folder",
            )
        name = f"{job.job}.control.csv"
        write_atomically(
            self._folder / name, control_csv(PartOutcome.from_json(part.outcome).control for part in parts)
        )
        return name

    @staticmethod
    def _later(job: BulkJob, pause: Pause, error: StrandlineError) -> None:
        _LOG.warning("the event of a job can't be delivered now", job=job.job, error=str(error))
        pause.begin()


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file under another name, and rename it once it is on the disk: readers see all of it or nothing. Raises
    `EventNotWritten`.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with aside.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)
    except OSError as error:
        raise EventNotWritten(
            f"{path} can't be written: {error.strerror or error}", remedy="Check jobs.events_folder and its disk"
        ) from error


def delete_groups(log: DeletesGroups, job: BulkJob, parts: Sequence[BulkPart]) -> None:
    """Let the brokers forget what has landed of a job's parts, which are done in the store."""
    for part in parts:
        try:
            log.delete_group(identity_of(part))
        except StrandlineError as error:
            # A missing right, say. They expire by themselves.
            _LOG.warning("offsets of a job can't be deleted", job=job.job, error=str(error))
            return
