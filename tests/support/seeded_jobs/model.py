"""The invariants of a job in plain Python: expected samples, permitted transitions, and when nothing may land."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from strandline.jobs.bad_records import MAX_EXAMPLES
from strandline.jobs.report import JobReport
from strandline.node.bulk.reports import JobStatus
from strandline.store.bulk_jobs import BulkJob, BulkJobState, BulkPart
from strandline.store.jobs import JobState
from support.seeded.violations import Violation

_PLANNED, _RUNNING, _PAUSED, _BROKEN, _COMPLETING, _DONE, _FAILED, _CANCELLED = (
    BulkJobState(name)
    for name in ("planned", "running", "paused", "broken", "completing", "done", "failed", "cancelled")
)
_FOLLOWS = {
    _PLANNED: {_RUNNING, _PAUSED, _CANCELLED},
    _RUNNING: {_COMPLETING, _FAILED, _BROKEN, _PAUSED, _CANCELLED},
    _PAUSED: {_RUNNING, _CANCELLED},
    _BROKEN: {_RUNNING, _PAUSED, _CANCELLED},
    _COMPLETING: {_DONE},
    _FAILED: {_RUNNING},
    _DONE: set[BulkJobState](),
    _CANCELLED: set[BulkJobState](),
}

Landed = Counter[tuple[int, float]]
"""The number of copies of each sample of a job in the topic, by time and value."""


@dataclass
class Row:
    """A row of the file."""

    time: int
    value: float
    is_bad: bool


@dataclass
class JobModel:
    """The model of a job. `was` are the events that may explain a state."""

    name: str
    rows: list[Row]
    was: set[str] = field(default_factory=set)
    frozen: Landed | None = None
    completions: int = 0

    @property
    def expected(self) -> Landed:
        return Counter((row.time, row.value) for row in self.rows if not row.is_bad)

    def job_changed(self, before: BulkJob, after: BulkJob, landed: Landed, records: int) -> None:
        """Check a change of the job's row. `landed` and `records` are in the topic at that time."""
        if before.state is after.state:
            return
        if after.state not in _FOLLOWS[before.state]:
            raise Violation(f"{self.name}: {before.state} was followed by {after.state}")
        self._check_frozen(landed)
        self.frozen = landed if after.state in (_PAUSED, _CANCELLED) else None
        match after.state:
            case BulkJobState.DONE:
                self.completions += 1
                self._check_done(after, landed, records)
            case BulkJobState.BROKEN:
                self._explain(after, {"bad rows", "refused records"})
            case BulkJobState.FAILED:
                self._explain(after, {"crash", "file changed", "refused", "refused records", "days", "clock ahead"})
            case BulkJobState.CANCELLED:
                self._explain(after, {"cancel", "days", "clock ahead"})
            case _:
                pass

    def part_changed(self, before: BulkPart, after: BulkPart) -> None:
        """Check a change of a part's row."""
        if before.state is JobState.DONE:
            raise Violation(f"{before.name} was done, and is {after.state} now")
        if after.epoch < before.epoch:
            raise Violation(f"{before.name} had epoch {before.epoch}, and has {after.epoch} now")

    def check_landed(self, landed: Landed) -> None:
        """Check the content of the topic, at any time."""
        double = {sample: count for sample, count in landed.items() if count > 1}
        if double:
            raise Violation(f"{self.name}: duplicate samples {double}")
        foreign = set(landed) - set(self.expected)
        if foreign:
            raise Violation(f"{self.name}: samples that the planned file does not have: {foreign}")
        self._check_frozen(landed)

    def check_settled(self, job: BulkJob, parts: Sequence[BulkPart], landed: Landed) -> None:
        """Check the end of the history, after everything was repaired and workers have run."""
        self.check_landed(landed)
        counted = JobStatus.of(job, parts).counts.samples
        # Unless the offsets may have expired, which makes it unknown what has landed.
        if counted != landed.total() and not self.was & {"days", "clock ahead"}:
            raise Violation(f"{self.name} is {job.state}: {landed.total()} samples landed, but {counted} are counted")
        if job.state is _DONE:
            if self.completions != 1:
                raise Violation(f"{self.name} was completed {self.completions} times")
        elif job.state is _FAILED:
            if not self.was & {"days", "clock ahead"} or "offsets.retention" not in job.reason:
                raise Violation(f"{self.name} has failed: {job.reason}")
        elif job.state is not _CANCELLED:
            raise Violation(f"{self.name} is {job.state} in the end; parts: {[part.state.value for part in parts]}")

    def _check_frozen(self, landed: Landed) -> None:
        if self.frozen is not None and landed != self.frozen:
            raise Violation(f"{self.name}: samples landed while nothing may: {landed - self.frozen}")

    def _check_done(self, job: BulkJob, landed: Landed, records: int) -> None:
        if landed != self.expected:
            raise Violation(f"{self.name} is done: lost {self.expected - landed}, too many {landed - self.expected}")
        report = JobReport.from_json(job.report)
        bad = [number for number, row in enumerate(self.rows, 1) if row.is_bad]
        counts = report.counts
        found = (counts.records, counts.samples, counts.bad, counts.sent)
        wanted = (len(self.rows), len(self.rows) - len(bad), len(bad), records)
        if found != wanted:
            raise Violation(f"{self.name}: the report has {found}, but {wanted} is correct")
        if sum(report.times.counts.values()) != wanted[1]:
            raise Violation(f"{self.name}: {report.times} are not {wanted[1]} samples")
        # The header is the first line of the file.
        lines = [one.record.line - 1 for one in report.bad_lines]
        if lines != bad[:MAX_EXAMPLES]:
            raise Violation(f"{self.name}: bad rows are {bad[:MAX_EXAMPLES]}, but the report has {lines}")

    def _explain(self, job: BulkJob, causes: set[str]) -> None:
        if not self.was & causes:
            raise Violation(f"{self.name} is {job.state} without a cause: {job.reason}")
