"""Plans jobs that send series: the template, the parts, and one job per UTC offset for local times."""

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from strandline.clock import Clock
from strandline.digest import digest
from strandline.errors import ExitCode, Fatal
from strandline.jobs.control_list import KEYS_PER_PART, MAX_KEYS
from strandline.jobs.control_sample import ControlSample
from strandline.jobs.landing.kafka_group import KafkaGroups
from strandline.jobs.sending.send_kind import SEND
from strandline.jobs.sending.series import SeriesQuery
from strandline.jobs.sending.spec import HASHES, SendSpec, ZoneRule, equal_ranges
from strandline.jobs.sending.template import MessageTemplate, TemplateUnusable
from strandline.jobs.sending.zones import LocalTime, ZoneGroup, group_zones
from strandline.node.bulk.adding import PlannedJob
from strandline.node.client.node_client import TimeBounds
from strandline.node.client.notation import quoted
from strandline.node.client.series_source import NodeSeries, nodes_of
from strandline.node.output import Block, Table
from strandline.node.recovering.formatting import count, moment
from strandline.node.settings.clients import librdkafka_options
from strandline.node.settings.sections import Settings
from strandline.time_range import TimeRange

_TOPIC_TIMEOUT_S = 30.0
_MAX_PARTS = 10_000
# The store's limit for a text is 64 KB.
_MAX_SPEC_BYTES = 60_000
_PLAIN_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# Characters that need no escape in a regular expression.
_PLAIN_ZONE = re.compile(r"[A-Za-z0-9_/-]", re.ASCII)


class SendRefused(Fatal):
    """A job that sends series can't be planned with these options."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class SendOptions:
    """The operator's options. `is_at_fixed`: `at` was given, and is not the time of planning."""

    selector: str
    topic: str
    template: Mapping[str, Any]
    at: int
    control: ControlSample
    zone_label: str = ""
    local_time: LocalTime | None = None
    is_at_fixed: bool = False


@dataclass(frozen=True, slots=True)
class PlannedSend:
    """One job of a plan. With local times, `offset` is its UTC offset in hours. `is_at_fixed`: the time at which series
    are selected was given, and is not the time of planning.
    """

    spec: SendSpec
    parts: int
    due_at: int = 0
    offset: int | None = None
    is_at_fixed: bool = False

    def job(self) -> PlannedJob:
        """The job to add to the store."""
        spec = self.spec.to_json()
        sources = tuple(part.to_json(self.spec.selector) for part in equal_ranges(self.parts))
        texts = "\n".join((spec, *sources))
        # Sources are not compared: the number of parts depends on the current number of series.
        return PlannedJob(
            SEND,
            spec,
            f"{digest(texts.encode()):032x}",
            sources,
            self.due_at,
            plan_time_fields=frozenset() if self.is_at_fixed else frozenset({"window"}),
            compares_sources=False,
        )


@dataclass(frozen=True, slots=True)
class SendPlan:
    """The jobs of a plan by due time, and the number of series."""

    topic: str
    at: int
    series: int
    jobs: tuple[PlannedSend, ...]
    unknown_zones: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SendPlanJob:
    """A job in the report of a plan."""

    offset: int | None
    due_at: int
    parts: int
    zones: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SendPlanReport:
    """The report of a plan."""

    topic: str
    at: int
    series: int
    control: float
    jobs: tuple[SendPlanJob, ...]
    unknown_zones: tuple[str, ...]

    @classmethod
    def of(cls, plan: SendPlan) -> "SendPlanReport":
        """The report of this plan."""
        jobs = tuple(
            SendPlanJob(one.offset, one.due_at, one.parts, one.spec.zones.zones if one.spec.zones else ())
            for one in plan.jobs
        )
        return cls(plan.topic, plan.at, plan.series, plan.jobs[0].spec.control.fraction, jobs, plan.unknown_zones)

    def blocks(self) -> list[Block]:
        """A table of jobs, and lines."""
        rows = tuple(
            (
                f"UTC{one.offset:+03d}:00" if one.offset is not None else "",
                moment(one.due_at) if one.due_at else "at once",
                count(one.parts),
                ", ".join(one.zones),
            )
            for one in self.jobs
        )
        found: list[Block] = [Table(("offset", "due", "parts", "time zones"), rows)]
        found.append(f"About {count(self.series)} series at {moment(self.at)} would become messages in {self.topic}.")
        if self.control:
            found.append(f"Of these, {self.control:.2%} would be left out as a control sample.".replace("%", " %"))
        if self.unknown_zones:
            found.append(
                f"Bad records, because these time zones don't exist: {', '.join(map(quoted, self.unknown_zones))}."
            )
        found.append("Nothing was written.")
        return found


def read_template(path: Path) -> Mapping[str, Any]:
    """A template file, which is TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise TemplateUnusable(
            f"the template {path} can't be read: {error}", remedy="See docs/pipeline.md for examples of templates"
        ) from error


def plan_send(settings: Settings, options: SendOptions, clock: Clock) -> SendPlan:
    """Check the template and the topic, count the series, and divide them into parts. Writes nothing."""
    MessageTemplate.from_table(options.template)
    _require_target(settings, options, clock)
    window = TimeRange(options.at - settings.query.lookback.milliseconds, options.at)
    within = TimeBounds(window.first, window.last)
    nodes = nodes_of(settings)
    # Fails now if parts would fail later: a partition is not served, or an answer is incomplete.
    NodeSeries(nodes).page(SeriesQuery(options.selector, window, 0, HASHES - 1, 1, newest=False))
    series, zones = 0, set[str]()
    for node in nodes:
        with closing(node.client()) as client:
            series += sum(client.count_series(options.selector, within).items)
            if options.local_time is not None:
                zones.update(client.label_values(options.zone_label, (options.selector,), within, 0).items)
    parts = _parts(series, settings.jobs.part_series, options.control)
    spec = SendSpec(
        options.selector,
        options.topic,
        window,
        options.template,
        options.control,
        max_message=settings.jobs.max_record.bytes,
    )
    _require_small(spec, zones)
    if options.local_time is None:
        return SendPlan(options.topic, options.at, series, (PlannedSend(spec, parts, is_at_fixed=options.is_at_fixed),))
    grouped = group_zones(zones, options.local_time, clock.now_ms())
    if not grouped.groups:
        raise SendRefused(
            f"no series has a time zone in the label {options.zone_label}",
            remedy="Check --timezone-label: its values must be IANA names such as Europe/Berlin",
        )
    planned = tuple(zone for group in grouped.groups for zone in group.zones)
    jobs = tuple(
        replace(
            _of_group(spec, options.zone_label, group, planned, parts, is_first=at == 0),
            is_at_fixed=options.is_at_fixed,
        )
        for at, group in enumerate(grouped.groups)
    )
    return SendPlan(options.topic, options.at, series, jobs, grouped.unknown)


def narrowed(selector: str, label: str, zones: Sequence[str]) -> str:
    """The selector with a matcher for some time zones."""
    names = "|".join("".join(one if _PLAIN_ZONE.match(one) else f"[{one}]" for one in zone) for zone in zones)
    matcher = f"{label if _PLAIN_LABEL.fullmatch(label) else quoted(label)}=~{quoted(names)}"
    inside = selector.rstrip()
    if not inside.endswith("}"):
        return f"{inside}{{{matcher}}}"
    inside = inside[:-1].rstrip()
    return f"{inside}{'' if inside.endswith(('{', ',')) else ','}{matcher}}}"


def _of_group(
    spec: SendSpec, label: str, group: ZoneGroup, planned: tuple[str, ...], parts: int, *, is_first: bool
) -> PlannedSend:
    """The job of an offset. The first job reads all series, and counts those whose zone belongs to no job."""
    rule = ZoneRule(label, group.zones, is_first, planned if is_first else ())
    selector = spec.selector if is_first else narrowed(spec.selector, label, group.zones)
    narrowed_spec = SendSpec(
        selector, spec.topic, spec.window, spec.template, spec.control, rule, max_message=spec.max_message
    )
    return PlannedSend(narrowed_spec, parts, group.due_at, group.offset)


def _parts(series: int, part_series: int, control: ControlSample) -> int:
    left_out = series * control.fraction
    if left_out > MAX_KEYS:
        raise SendRefused(
            f"the control sample would have about {left_out:,.0f} series, over the limit of {MAX_KEYS:,}",
            remedy="Choose a smaller --control, or a narrower selector",
        )
    return max(1, min(_MAX_PARTS, max(-(-series // part_series), -int(-left_out // KEYS_PER_PART))))


def _require_small(spec: SendSpec, zones: Collection[str]) -> None:
    """Raises `SendRefused` for a spec that does not fit into a job's row."""
    # A zone occurs up to three times: in the job's zones, in those of all jobs, and in the selector.
    size = len(spec.to_json()) + 3 * sum(len(zone) + 8 for zone in zones)
    if size > _MAX_SPEC_BYTES:
        raise SendRefused(
            f"the spec takes {size:,} bytes, over the limit of {_MAX_SPEC_BYTES:,}",
            remedy="Choose a shorter template or selector, or a label with fewer values",
        )


def _require_target(settings: Settings, options: SendOptions, clock: Clock) -> None:
    """Raises an error unless the topic exists and is not the dataset's, and a control sample can be written."""
    if options.topic == settings.dataset.topic_name:
        raise SendRefused(
            f"{options.topic} is the dataset's own topic: its shards would read the messages as samples",
            remedy="Use another topic",
        )
    if options.control.fraction and settings.jobs.events_folder is None:
        raise SendRefused(
            "jobs.events_folder is not set, to which the control sample is written", remedy="Set jobs.events_folder"
        )
    with closing(KafkaGroups(librdkafka_options(settings.kafka), options.topic, clock)) as groups:
        groups.require_topic(_TOPIC_TIMEOUT_S)
