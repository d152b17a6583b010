"""Putting a plan into the store, as a job that workers may take."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime

from strandline.clock import Clock
from strandline.jobs.board import BulkBoard
from strandline.jobs.rate import with_rate
from strandline.node.settings.sections import Settings
from strandline.store.bulk_jobs import BulkJob, BulkPart

_DAY_MS = 86_400_000
# Beyond its expiry a job is kept for so long, to be looked at.
_KEPT_MS = 30 * _DAY_MS


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A job of any kind: its spec, what tells its plan from any other, and the sources of its parts, as JSON. It is not
    begun before `due_at`; 0: at once. Fields of the spec that follow from when it was planned are `plan_time_fields`; the
    sources may do so, too, unless the plan `compares_sources`.
    """

    kind: str
    spec: str
    plan_hash: str
    sources: tuple[str, ...]
    due_at: int = 0
    plan_time_fields: frozenset[str] = frozenset()
    compares_sources: bool = True


def add_job(
    settings: Settings, board: BulkBoard, planned: PlannedJob, clock: Clock, rate: float | None = None
) -> BulkJob:
    """Put a plan into the store; the job that workers may take from now on. All of them together land at most `rate`
    samples or messages of it a second.
    """
    now = clock.now_ms()
    dataset, expiry = settings.dataset.name, settings.jobs.expiry.milliseconds
    name = f"{datetime.fromtimestamp(now / 1000, UTC):%Y%m%dT%H%M%SZ}-{os.urandom(3).hex()}"
    life = expiry + _KEPT_MS
    job = BulkJob(
        dataset,
        name,
        planned.kind,
        planned.spec if rate is None else with_rate(planned.spec, rate),
        planned.plan_hash,
        len(planned.sources),
        life,
        now,
        due_at=planned.due_at,
        expires_after=expiry,
    )
    board.add(job, [BulkPart(dataset, name, at, source, life) for at, source in enumerate(planned.sources)])
    return job
