"""Plans exports: checks which hours are ready, and divides what is stored into days and parts."""

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
from strandline.node.recovering.formatting import count
from strandline.recovery.periods import HOUR, HOURS_A_DAY, Period, parse_period
from strandline.recovery.readiness import NOT_READ_YET, Readiness, StoredDataset, Verdict, readiness
from strandline.store.bulk_jobs import BulkJob


class HoursNotReady(Fatal):
    """Hours of the range are not ready."""

    exit_code = ExitCode.NOT_READY


class NoTime(Fatal):
    """The end is not after the start."""

    exit_code = ExitCode.USAGE


def stored_now(deployment: Deployment, start: int, end: int, *, not_ready: bool) -> StoredState:
    """A snapshot of what is stored. Raises `HoursNotReady` if an hour in `[start, end)` is not ready, unless
    `not_ready` allows it.
    """
    if end <= start:
        raise NoTime("the end is not after the start", remedy="Give a later --end")
    stored = deployment.stored(deployment.topic.now())
    unready = hours_not_ready(stored, start, end)
    if unready and not not_ready:
        first = unready[0]
        behind = ", ".join(str(one.shard) for one in first.behind)
        why = first.reason or f"these partitions are behind: {behind}"
        raise HoursNotReady(
            f"{len(unready)} hours are not ready, the first is {first.period}: {why}",
            remedy=f"Wait for it (`strandline ready {first.period} --wait SECONDS`), or use an earlier --end or "
            "--not-ready",
        )
    manifests = {shard: one for shard, one in enumerate(stored.manifests) if one is not None}
    time = deployment.store.server_time()
    now = time if time is not None else deployment.clock.now_ms()
    hours = frozenset(parse_period(one.period).start for one in unready)
    return StoredState(deployment.name, deployment.groups, manifests, hours, now)


def hours_not_ready(stored: StoredDataset, start: int, end: int) -> Sequence[Readiness]:
    """The hours in `[start, end)` that may still change. Hours before the dataset's first record can only get late
    samples, and count as ready.
    """
    first_hour, end_hour = start // HOUR, -(-end // HOUR)
    found: list[Readiness] = []
    for hour in range(first_hour, end_hour, HOURS_A_DAY):
        period = Period(hour, min(HOURS_A_DAY, end_hour - hour))
        if readiness(stored, period).verdict is not Verdict.READY:
            found += [readiness(stored, each) for each in period.each_hour()]
    return [one for one in found if one.verdict is not Verdict.READY and one.reason != NOT_READ_YET]


def planned_export(
    deployment: Deployment, options: ExportOptions, *, not_ready: bool = False, write: bool = True
) -> ExportPlan:
    """Plan an export. With `write`, the plan's files are written to the target."""
    stored = stored_now(deployment, options.start, options.end, not_ready=not_ready)
    return plan_export(deployment.store, stored, options, os.urandom(8).hex(), write=write)


def export_job(plan: ExportPlan) -> PlannedJob | None:
    """A plan as a job; None if there is no day to export."""
    if not plan.parts:
        return None
    return PlannedJob(EXPORT, plan.spec.to_json(), plan.hash, tuple(part.to_json() for part in plan.parts))


def open_export(board: BulkBoard, options: ExportOptions) -> BulkJob | None:
    """An open export with the same options; None if there is none. It reads what was stored when it was planned. Raises
    `JobIdle` if it is paused or broken.
    """
    wanted = {"to": options.to, "selector": options.selector, "start": options.start, "end": options.end}
    return find_open(board, EXPORT, lambda spec: all(spec[name] == value for name, value in wanted.items()))


@dataclass(frozen=True, slots=True)
class ExportPlanReport:
    """The plan of an export, by day."""

    to: str
    selector: str
    days: tuple[PlannedDay, ...]

    @classmethod
    def of(cls, plan: ExportPlan) -> "ExportPlanReport":
        """The report of a plan."""
        return cls(plan.spec.to, plan.spec.selector, plan.days)

    def blocks(self) -> list[Block]:
        """A table of days."""
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
