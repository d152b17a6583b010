"""Replay jobs as values: offset ranges that workers lease. Times are milliseconds since the epoch."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from strandline.store.rows import ShardId

LIFE_OF_VERSION_2: Final = 7 * 24 * 3_600_000
"""The life of a job that a node of schema version 2 wrote, from the next write on: it has a date instead of a life."""


class JobState(StrEnum):
    """Where a replay job stands, or a part of a bulk job."""

    PENDING = "pending"
    LEASED = "leased"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Job:
    """Offsets `[start, end)` of a shard's bucket, to be read again for some groups.

    A shard has one job a bucket. `epoch` rises with each lease, so that a worker whose lease ran out is known by it,
    and `renewals` with each renewal, so that a watcher sees it without comparing clocks. Each write gives a job its
    whole `life` again, in milliseconds.
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
        """Where it stands in the table."""
        return self.shard.dataset, self.shard.shard, self.bucket

    @property
    def compared(self) -> tuple[object, ...]:
        """What must be as it was seen for a change to be made."""
        return self.plan, self.state, self.epoch, self.worker, self.leased_until, self.renewals

    @property
    def key(self) -> tuple[ShardId, int, str]:
        """Which work it is: another plan's job for the bucket is another one."""
        return self.shard, self.bucket, self.plan

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"the job for bucket {self.bucket} of {self.shard}"

    @property
    def detail(self) -> str:
        """What messages say beside the name."""
        return f"offsets [{self.start}, {self.end})"


@dataclass(frozen=True, slots=True)
class JobResultOf:
    """Where the key summaries of a job lie, under the attempt (plan and job epoch) that wrote them."""

    shard: ShardId
    bucket: int
    attempt: str


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One row of a result. `kind` sets summaries and the keys' bytes apart; rows stand in the order of (kind, seq)."""

    kind: str
    seq: int
    data: bytes = field(repr=False)
