"""Replay jobs as values: offset ranges that workers lease. Times are milliseconds since the epoch."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from strandline.store.rows import ShardId

LIFE_OF_VERSION_2: Final = 7 * 24 * 3_600_000
"""The lifetime, from the next write, of a job that a node of schema version 2 wrote: that version stores a date
instead.
"""


class JobState(StrEnum):
    """The state of a replay job, or of a part of a bulk job."""

    PENDING = "pending"
    LEASED = "leased"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Job:
    """Offsets `[start, end)` of a shard's bucket, to be replayed for some groups.

    A shard has at most one job per bucket. `epoch` rises with each lease, which identifies a worker whose lease has
    expired. `renewals` rises with each renewal, so that watchers need not compare clocks. Each write renews the
    lifetime (`life`, in milliseconds).
    """

    shard: ShardId
    bucket: int
    plan: str
    start: int
    end: int
    groups: frozenset[int]
    wants_keys: bool
    life: int
    state: JobState = JobState.PENDING
    epoch: int = 0
    worker: str = ""
    leased_until: int = 0
    failures: int = 0
    reason: str = ""
    renewals: int = 0
    settings: str = ""

    @property
    def primary_key(self) -> tuple[str, int, int]:
        """The primary key of the row."""
        return self.shard.dataset, self.shard.shard, self.bucket

    @property
    def compared(self) -> tuple[object, ...]:
        """The values that must be unchanged for a change to be applied."""
        return self.plan, self.state, self.epoch, self.worker, self.leased_until, self.renewals

    @property
    def key(self) -> tuple[ShardId, int, str]:
        """Identifies the work: a job of another plan for the same bucket is another job."""
        return self.shard, self.bucket, self.plan

    @property
    def name(self) -> str:
        """The name of the job in messages."""
        return f"the job for bucket {self.bucket} of {self.shard}"

    @property
    def detail(self) -> str:
        """What messages add to the name."""
        return f"offsets [{self.start}, {self.end})"


@dataclass(frozen=True, slots=True)
class JobResultOf:
    """The address of a job's key summaries, under the attempt (plan and job epoch) that wrote them."""

    shard: ShardId
    bucket: int
    attempt: str


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One row of a result. `kind` separates summaries from key bytes; rows are ordered by (kind, seq)."""

    kind: str
    seq: int
    data: bytes = field(repr=False)
