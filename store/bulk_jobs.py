"""Bulk jobs and their parts as values. Times and durations are in milliseconds, times since the epoch.

A job's task (`spec`), a part's bytes or series (`source`), and the counts (`counts`, `outcome`, `report`) are JSON that
no store interprets.
"""

from dataclasses import dataclass
from enum import StrEnum

from strandline.store.jobs import JobState


class BulkJobState(StrEnum):
    """The state of a bulk job."""

    PLANNED = "planned"
    RUNNING = "running"
    PAUSED = "paused"
    BROKEN = "broken"
    """The circuit breaker is open: too many records were bad."""
    COMPLETING = "completing"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Wanted(StrEnum):
    """The state that an operator has requested, while leased parts are still being fenced."""

    NOTHING = ""
    PAUSED = "paused"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class BulkJob:
    """A task over files or series, divided into `parts` parts.

    The row is written after all of its parts. `job` is an id that begins with the planning time, so a dataset's jobs
    are in that order. `version` rises with each change. Each write renews the lifetime (`life`).
    """

    dataset: str
    job: str
    kind: str
    spec: str
    plan_hash: str
    parts: int
    life: int
    created_at: int
    state: BulkJobState = BulkJobState.PLANNED
    version: int = 0
    window: int = 0
    """The circuit breaker counts from the start of the current window. A resume starts the next window."""
    wanted: Wanted = Wanted.NOTHING
    reason: str = ""
    changed_at: int = 0
    due_at: int = 0
    """The earliest time to start; 0: immediately."""
    idle_since: int = 0
    """When the job was paused or broken; 0: it is neither."""
    expires_after: int = 0
    """How long the job may stay paused or broken; 0: without a limit."""
    report: str = ""

    @property
    def primary_key(self) -> tuple[str, str]:
        """The primary key of the row."""
        return self.dataset, self.job

    @property
    def compared(self) -> tuple[object, ...]:
        """The values that must be unchanged for a change to be applied."""
        return self.plan_hash, self.version, self.state, self.window, self.wanted

    @property
    def name(self) -> str:
        """The name of the job in messages."""
        return f"the bulk job {self.job} of {self.dataset}"


@dataclass(frozen=True, slots=True)
class BulkPart:
    """One part of a bulk job: the unit of leasing, retry and counting. It is leased like a replay job.

    `counts` are those of the current attempt, stored with each renewal, for the circuit breaker's `window`; `outcome`
    has those of a finished part. Each write renews the lifetime (`life`).
    """

    dataset: str
    job: str
    part: int
    source: str
    life: int
    state: JobState = JobState.PENDING
    epoch: int = 0
    worker: str = ""
    leased_until: int = 0
    renewals: int = 0
    failures: int = 0
    reason: str = ""
    window: int = 0
    counts: str = ""
    outcome: str = ""

    @property
    def primary_key(self) -> tuple[str, str, int]:
        """The primary key of the row."""
        return self.dataset, self.job, self.part

    @property
    def compared(self) -> tuple[object, ...]:
        """The values that must be unchanged for a change to be applied."""
        return self.state, self.epoch, self.worker, self.leased_until, self.renewals

    @property
    def key(self) -> tuple[str, str, int]:
        """Identifies the work; a job is planned once, so this is the primary key."""
        return self.primary_key

    @property
    def name(self) -> str:
        """The name of the part in messages."""
        return f"part {self.part} of the bulk job {self.job} of {self.dataset}"

    @property
    def detail(self) -> str:
        """Empty: the part's number identifies it completely."""
        return ""
