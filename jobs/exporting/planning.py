"""The plan of an export: which days, from which rows, in which parts.

Rows are pinned first and series resolved after that, so that every part reads one state. What is pinned and found is
written below the target, and the job's rows hold the rest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strandline.digest import digest
from strandline.index.selectors import parse_selector, require_a_non_empty_matcher
from strandline.jobs.exporting.day_manifest import (
    NAME,
    DayAction,
    DayManifest,
    ExportDay,
    choose_action,
    days_between,
    fingerprint,
)
from strandline.jobs.exporting.day_plan import DayPlan, write_day
from strandline.jobs.exporting.spec import ExportPart, ExportSpec
from strandline.jobs.exporting.target import Target
from strandline.jobs.reading.pins import Pins, expired_rows, pin
from strandline.jobs.reading.resolving import Resolved, resolve
from strandline.jobs.reading.series_task import expected_samples, rows_of, series_ranges
from strandline.recovery.periods import HOUR
from strandline.store.protocol import Store
from strandline.store.rows import ManifestRows
from strandline.time_range import TimeRange

PART_SAMPLES = 32_000_000
"""About so many samples are one part, and one file."""
PLANS = "_plans"


@dataclass(frozen=True, slots=True)
class StoredState:
    """A dataset as it is stored at one moment: its manifests by shard, and which of the hours asked for, as the
    beginning of each, are not ready. `now` is by the clock that expires data.
    """

    dataset: str
    groups: int
    manifests: Mapping[int, ManifestRows]
    not_ready: frozenset[int]
    now: int


@dataclass(frozen=True, slots=True)
class PlannedDay:
    """What becomes of a day."""

    day: str
    choice: DayAction
    revision: int
    parts: int
    series: int
    expected: int


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """A plan. It has no parts if no day is to be exported."""

    spec: ExportSpec
    hash: str
    days: tuple[PlannedDay, ...]
    parts: tuple[ExportPart, ...]


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What to export, from `start` to before `end`, and how large parts are."""

    to: str
    selector: str
    start: int
    end: int
    part_samples: int = PART_SAMPLES


def plan_export(
    store: Store, stored: StoredState, options: ExportOptions, plan_id: str, *, write: bool = True
) -> ExportPlan:
    """Plan an export; with `write`, the plan's files are in the target afterwards. `plan_id` is used once. Raises what
    is wrong with selector, target or stored data.
    """
    matchers = parse_selector(options.selector)
    require_a_non_empty_matcher(matchers)
    times = TimeRange(options.start, options.end - 1)
    pins = pin(stored.dataset, stored.groups, stored.manifests, times, stored.now)
    resolved = resolve(store, pins, matchers)
    planner = _Planner(Target(options.to), f"{PLANS}/{plan_id}", stored, pins, resolved, options)
    days: list[PlannedDay] = []
    parts: list[ExportPart] = []
    described: list[bytes] = []
    for start, end in days_between(options.start, options.end):
        day, of_day, content = planner.plan(ExportDay(stored.dataset, options.selector, start, end), write=write)
        days.append(day)
        parts += of_day
        described.append(content)
    exported = tuple(one.day for one in days if one.choice is DayAction.EXPORT)
    spec = ExportSpec(
        options.to, stored.dataset, options.selector, options.start, options.end, planner.folder, exported
    )
    texts = [spec.to_json().encode(), *described, *(part.to_json().encode() for part in parts)]
    return ExportPlan(spec, f"{digest(b''.join(texts)):032x}", tuple(days), tuple(parts))


@dataclass(frozen=True, slots=True)
class _Planner:
    """Plans day by day, from what was pinned and found once."""

    target: Target
    folder: str
    stored: StoredState
    pins: Pins
    resolved: Resolved
    options: ExportOptions

    def plan(self, of: ExportDay, *, write: bool) -> tuple[PlannedDay, Sequence[ExportPart], bytes]:
        """A day: what becomes of it, its parts, and its plan as it is written."""
        target, groups = self.target, self.pins.groups
        times = TimeRange(of.start, of.end - 1)
        series = self.resolved.series.within(times.first, times.last)
        rows = rows_of(series, groups, self.pins.rows, times)
        before = target.read(f"{of.folder}/{NAME}")
        former = DayManifest.from_json(before, target.uri_of(f"{of.folder}/{NAME}")) if before is not None else None
        gone = expired_rows(former.rows, self.stored.manifests, self.stored.now) if former is not None else ()
        choice = choose_action(former, of, [row.id for row in rows], gone)
        revision = 0 if former is None else former.revision
        if choice is not DayAction.EXPORT:
            return PlannedDay(of.day, choice, revision, 0, len(series), 0), (), b""
        ready = not any(of.start < hour + HOUR and hour < of.end for hour in self.stored.not_ready)
        plan = DayPlan(of, groups, ready, fingerprint(before), revision + 1, rows, series.shard_sets)
        ordered = series.by_labels()
        expected = expected_samples(ordered, groups, rows, times, self.resolved.known)
        # A day without samples has one part, which finds that out.
        ranges = series_ranges(expected, self.options.part_samples) or [(0, 0)]
        if write:
            cut = [(ordered.part(first, behind), expected[first:behind]) for first, behind in ranges]
            write_day(target, self.folder, plan, cut)
        parts = [
            ExportPart(target.uri_of(of.folder), of.day, number, behind - first, int(expected[first:behind].sum()))
            for number, (first, behind) in enumerate(ranges)
        ]
        samples = sum(part.expected for part in parts)
        return PlannedDay(of.day, choice, revision + 1, len(parts), len(series), samples), parts, plan.to_json()
