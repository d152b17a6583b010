"""Adds a planned job to the store, so that workers can take it."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime

from strandline.clock import Clock
from strandline.jobs.board import BulkBoard
from strandline.jobs.rate import with_rate
from strandline.node.settings.sections import Settings
from strandline.store.bulk_jobs import BulkJob, BulkPart

_DAY_MS = 86_400_000
# How long a job is kept after its expiry, so that its status can be shown.
_KEPT_MS = 30 * _DAY_MS


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A planned job of any kind: its spec and the sources of its parts, as JSON, and the hash of the plan.

    Workers don't start it before `due_at`; 0: at once. Two plans are identical if their specs are equal, except for
    `plan_time_fields`, which depend on the time of planning, and, with `compares_sources`, their sources.
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
    """Add a plan to the store, and return the job. `rate` limits all of its workers together, in samples or messages
    per second.
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
