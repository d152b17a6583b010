"""Replay jobs as values: offset ranges that workers lease. Times are milliseconds since the epoch."""

from dataclasses import dataclass, field
from enum import StrEnum

from strandline.store.rows import ShardId


class JobState(StrEnum):
    """Where a job stands."""

    PENDING = "pending"
    LEASED = "leased"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Job:
    """Offsets `[start, end)` of a shard's bucket, to be read again for some groups.

    A shard has one job a bucket. `epoch` rises with each lease, so that a worker whose lease ran out is known by it.
    """

    shard: ShardId
    bucket: int
    plan: str
    start: int
    end: int
    groups: frozenset[int]
    wants_keys: bool
    expires: int
    state: JobState = JobState.PENDING
    epoch: int = 0
    worker: str = ""
    leased_until: int = 0
    failures: int = 0
    reason: str = ""


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
