"""An export as an operator asks for it: the dataset as it is stored now, which hours are ready, and the plan."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from strandline.errors import ExitCode, Fatal
from strandline.jobs.board import BulkBoard
from strandline.jobs.exporting.day_manifest import DayAction
from strandline.jobs.exporting.export_kind import EXPORT
from strandline.jobs.exporting.planning import ExportOptions, ExportPlan, PlannedDay, StoredState, plan_export
from strandline.node.bulk.adding import PlannedJob
from strandline.node.bulk.open_jobs import find_open
from strandline.node.offsets.deployment import Deployment
from strandline.node.output import Block, Table
from strandline.node.recovering.words import count
from strandline.recovery.periods import HOUR, HOURS_A_DAY, Period, parse_period
from strandline.recovery.readiness import NOBODY_READ_THEN, Readiness, StoredDataset, Verdict, readiness
from strandline.store.bulk_jobs import BulkJob


class HoursNotReady(Fatal):
    """Hours that were asked for are not ready."""

    exit_code = ExitCode.NOT_READY


class NoTime(Fatal):
    """The end is not behind the start."""

    exit_code = ExitCode.USAGE


def stored_now(deployment: Deployment, start: int, end: int, *, not_ready: bool) -> StoredState:
    """The dataset as it is stored now. Raises `HoursNotReady` if an hour from `start` to before `end` is not ready,
    unless `not_ready` allows it.
    """
    if end <= start:
        raise NoTime("the end is not behind the start", remedy="Give a later --end")
    stored = deployment.stored(deployment.topic.now())
    unready = hours_not_ready(stored, start, end)
    if unready and not not_ready:
        first = unready[0]
        behind = ", ".join(str(one.shard) for one in first.behind)
        why = first.reason or f"these partitions are behind: {behind}"
        raise HoursNotReady(
            f"{len(unready)} hours are not ready, the first is {first.period}: {why}",
            remedy=f"Wait for it (`strandline ready {first.period} --wait SECONDS`), end earlier, or use --not-ready",
        )
    manifests = {shard: one for shard, one in enumerate(stored.manifests) if one is not None}
    time = deployment.store.server_time()
    now = time if time is not None else deployment.clock.now_ms()
    hours = frozenset(parse_period(one.period).start for one in unready)
    return StoredState(deployment.name, deployment.groups, manifests, hours, now)


def hours_not_ready(stored: StoredDataset, start: int, end: int) -> Sequence[Readiness]:
    """The hours from `start` to before `end` that may still change. Hours before the dataset's first record can only
    get late samples, and count as ready.
    """
    first, behind = start // HOUR, -(-end // HOUR)
    found: list[Readiness] = []
    for begin in range(first, behind, HOURS_A_DAY):
        period = Period(begin, min(HOURS_A_DAY, behind - begin))
        if readiness(stored, period).verdict is not Verdict.READY:
            found += [readiness(stored, hour) for hour in period.each_hour()]
    return [one for one in found if one.verdict is not Verdict.READY and one.reason != NOBODY_READ_THEN]


def planned_export(
    deployment: Deployment, options: ExportOptions, *, not_ready: bool = False, write: bool = True
) -> ExportPlan:
    """Plan an export. With `write`, the plan's files are in the target afterwards."""
    stored = stored_now(deployment, options.start, options.end, not_ready=not_ready)
    return plan_export(deployment.store, stored, options, os.urandom(8).hex(), write=write)


def export_job(plan: ExportPlan) -> PlannedJob | None:
    """A plan as a job; None if no day is to be exported."""
    if not plan.parts:
        return None
    return PlannedJob(EXPORT, plan.spec.to_json(), plan.hash, tuple(part.to_json() for part in plan.parts))


def open_export(board: BulkBoard, options: ExportOptions) -> BulkJob | None:
    """An export of the same that is still to be done; None if there is none. It reads the dataset as it was stored when
    that was planned. Raises `JobIdle` if it is paused or broken.
    """
    wanted = {"to": options.to, "selector": options.selector, "start": options.start, "end": options.end}
    return find_open(board, EXPORT, lambda spec: all(spec[name] == value for name, value in wanted.items()))


@dataclass(frozen=True, slots=True)
class ExportPlanReport:
    """What an export does, or would do, with each day."""

    to: str
    selector: str
    days: tuple[PlannedDay, ...]

    @classmethod
    def of(cls, plan: ExportPlan) -> "ExportPlanReport":
        """Of a plan."""
        return cls(plan.spec.to, plan.spec.selector, plan.days)

    def blocks(self) -> list[Block]:
        """For people."""
        rows = tuple(
            (
                one.day,
                one.choice.value,
                str(one.revision),
                count(one.series),
                count(one.parts) if one.choice is DayAction.EXPORT else "",
                f"about {count(one.expected)}" if one.choice is DayAction.EXPORT else "",
            )
            for one in self.days
        )
        return [Table(("day", "what", "revision", "series", "parts", "samples"), rows)]
