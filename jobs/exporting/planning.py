"""The plan of an export: the days, the stored rows from which they are made, and the parts.

Rows are pinned before series are resolved, so that all parts read the same state. Rows and series are written to the
target, and the rest of the plan to the rows of the job.
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
from strandline.jobs.reading.pins import Pins, expired_rows, pin_rows
from strandline.jobs.reading.resolving import ResolvedSeries, resolve_series
from strandline.jobs.reading.series_task import expected_samples, rows_of, series_ranges
from strandline.recovery.periods import HOUR
from strandline.store.protocol import Store
from strandline.store.rows import ManifestRows
from strandline.time_range import TimeRange

PART_SAMPLES = 32_000_000
"""The approximate number of samples of a part, which writes one file."""
PLANS = "_plans"


@dataclass(frozen=True, slots=True)
class StoredState:
    """The stored state of a dataset: its manifests by shard, and the start times of the requested hours that are not
    ready. `now` is by the clock that expires data.
    """

    dataset: str
    groups: int
    manifests: Mapping[int, ManifestRows]
    not_ready: frozenset[int]
    now: int


@dataclass(frozen=True, slots=True)
class PlannedDay:
    """What the export does with a day."""

    day: str
    choice: DayAction
    revision: int
    parts: int
    series: int
    expected: int


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """A plan. It has no parts if no day must be exported."""

    spec: ExportSpec
    hash: str
    days: tuple[PlannedDay, ...]
    parts: tuple[ExportPart, ...]


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What to export, from `start` to `end` (exclusive), and the size of parts."""

    to: str
    selector: str
    start: int
    end: int
    part_samples: int = PART_SAMPLES


def plan_export(
    store: Store, stored: StoredState, options: ExportOptions, plan_id: str, *, write: bool = True
) -> ExportPlan:
    """Plan an export; with `write`, also write the plan's files to the target. `plan_id` must be unique. Raises the
    errors of selector, target and stored data.
    """
    matchers = parse_selector(options.selector)
    require_a_non_empty_matcher(matchers)
    times = TimeRange(options.start, options.end - 1)
    pins = pin_rows(stored.dataset, stored.groups, stored.manifests, times, stored.now)
    resolved = resolve_series(store, pins, matchers)
    planner = _Planner(Target(options.to), f"{PLANS}/{plan_id}", stored, pins, resolved, options)
    days: list[PlannedDay] = []
    parts: list[ExportPart] = []
    contents: list[bytes] = []
    for start, end in days_between(options.start, options.end):
        day, of_day, content = planner.plan(ExportDay(stored.dataset, options.selector, start, end), write=write)
        days.append(day)
        parts += of_day
        contents.append(content)
    exported = tuple(one.day for one in days if one.choice is DayAction.EXPORT)
    spec = ExportSpec(
        options.to, stored.dataset, options.selector, options.start, options.end, planner.folder, exported
    )
    texts = [spec.to_json().encode(), *contents, *(part.to_json().encode() for part in parts)]
    return ExportPlan(spec, f"{digest(b''.join(texts)):032x}", tuple(days), tuple(parts))


@dataclass(frozen=True, slots=True)
class _Planner:
    """Plans single days from the pinned rows and the resolved series."""

    target: Target
    folder: str
    stored: StoredState
    pins: Pins
    resolved: ResolvedSeries
    options: ExportOptions

    def plan(self, day: ExportDay, *, write: bool) -> tuple[PlannedDay, Sequence[ExportPart], bytes]:
        """Plan a day. Returns what the export does with it, its parts, and the content of its plan."""
        target, groups = self.target, self.pins.groups
        times = TimeRange(day.start, day.end - 1)
        series = self.resolved.series.within(times.first, times.last)
        rows = rows_of(series, groups, self.pins.rows, times)
        before = target.read(f"{day.folder}/{NAME}")
        former = DayManifest.from_json(before, target.uri_of(f"{day.folder}/{NAME}")) if before is not None else None
        expired = expired_rows(former.rows, self.stored.manifests, self.stored.now) if former is not None else ()
        choice = choose_action(former, day, [row.id for row in rows], expired)
        revision = 0 if former is None else former.revision
        if choice is not DayAction.EXPORT:
            return PlannedDay(day.date, choice, revision, 0, len(series), 0), (), b""
        ready = not any(day.start < hour + HOUR and hour < day.end for hour in self.stored.not_ready)
        plan = DayPlan(day, groups, ready, fingerprint(before), revision + 1, rows, series.shard_sets)
        ordered = series.by_labels()
        expected = expected_samples(ordered, groups, rows, times, self.resolved.known)
        # A day without series has one part, which writes nothing.
        ranges = series_ranges(expected, self.options.part_samples) or [(0, 0)]
        if write:
            cut = [(ordered.part(first, stop), expected[first:stop]) for first, stop in ranges]
            write_day(target, self.folder, plan, cut)
        parts = [
            ExportPart(target.uri_of(day.folder), day.date, number, stop - first, int(expected[first:stop].sum()))
            for number, (first, stop) in enumerate(ranges)
        ]
        samples = sum(part.expected for part in parts)
        return PlannedDay(day.date, choice, revision + 1, len(parts), len(series), samples), parts, plan.to_json()
