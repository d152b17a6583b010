"""Bulk jobs and their parts as values. Times and lengths are milliseconds, times since the epoch.

What a job is to do (`spec`), which bytes or series a part is about (`source`), and what was counted (`counts`,
`outcome`, `report`) are JSON, which no store looks into.
"""

from dataclasses import dataclass
from enum import StrEnum

from strandline.store.jobs import JobState


class BulkJobState(StrEnum):
    """Where a bulk job stands."""

    PLANNED = "planned"
    RUNNING = "running"
    PAUSED = "paused"
    BROKEN = "broken"
    """Too many records were bad: the circuit breaker is open."""
    COMPLETING = "completing"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Wanted(StrEnum):
    """What an operator has asked for, while parts that are leased are still being fenced."""

    NOTHING = ""
    PAUSED = "paused"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class BulkJob:
    """A large piece of work that is divided into `parts` parts.

    It is written after all of its parts. `job` is an id that begins with the time at which it was planned, so that a
    dataset's jobs come in that order. `version` rises with each change. Each write gives a job its whole `life` again.
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
    """The circuit breaker counts from the beginning of a window on. A resume begins the next one."""
    wanted: Wanted = Wanted.NOTHING
    reason: str = ""
    changed_at: int = 0
    due_at: int = 0
    """Not before this; 0: at once."""
    idle_since: int = 0
    """Since when it has been paused or broken; 0: it is neither."""
    expires_after: int = 0
    """For how long it may be paused or broken; 0: for ever."""
    report: str = ""

    @property
    def primary_key(self) -> tuple[str, str]:
        """Where it stands in the table."""
        return self.dataset, self.job

    @property
    def compared(self) -> tuple[object, ...]:
        """What must be as it was seen for a change to be made."""
        return self.plan_hash, self.version, self.state, self.window, self.wanted

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"the bulk job {self.job} of {self.dataset}"


@dataclass(frozen=True, slots=True)
class BulkPart:
    """One part of a bulk job: the unit of leasing, retry and counting. Its lease is like that of a replay job.

    `counts` are those of the attempt so far, which each renewal stores, for the breaker's `window`; `outcome` those of
    a part that is done. Each write gives a part its whole `life` again.
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
        """Where it stands in the table."""
        return self.dataset, self.job, self.part

    @property
    def compared(self) -> tuple[object, ...]:
        """What must be as it was seen for a change to be made."""
        return self.state, self.epoch, self.worker, self.leased_until, self.renewals

    @property
    def key(self) -> tuple[str, str, int]:
        """Which work it is: a job is planned once."""
        return self.primary_key

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"part {self.part} of the bulk job {self.job} of {self.dataset}"

    @property
    def detail(self) -> str:
        """Nothing: its number says all."""
        return ""
