"""Builds what the Spark data source needs from the settings: pinned reads, store openers, and imports."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from strandline.clock import Clock
from strandline.errors import ExitCode, Fatal
from strandline.index.matchers import Matcher
from strandline.index.selectors import parse_selector, require_a_non_empty_matcher
from strandline.jobs.importing.planning import plan_import
from strandline.jobs.importing.spec import Format
from strandline.jobs.reading.pins import Pins, pin_rows
from strandline.jobs.reading.task_division import TASK_SAMPLES
from strandline.node.bulk.adding import add_job
from strandline.node.bulk.exporting import stored_now
from strandline.node.bulk.importing import import_options, planned_import, require_offset_retention
from strandline.node.bulk.opening import offset_retention_ms, opened_board, worker
from strandline.node.bulk.reports import JobStatus
from strandline.node.offsets.deployment import Deployment, open_deployment
from strandline.node.replay.openers import store_opener
from strandline.node.settings.load import load_settings
from strandline.node.settings.sections import Settings
from strandline.recovery.periods import HOUR, parse_moment
from strandline.recovery.readiness import newest_ready_hour
from strandline.spark.executor_store import StoreOpener
from strandline.store.bulk_jobs import BulkJobState
from strandline.time_range import TimeRange

_OWN = ("match", "start", "end", "not_ready", "task_samples", "staging", "config", "path")


class OptionUnusable(Fatal):
    """An option of the data source is missing or invalid."""

    exit_code = ExitCode.USAGE


class NotLanded(Fatal):
    """A data frame has not landed completely."""


@dataclass(frozen=True, slots=True)
class PinnedRead:
    """A selector, a range of times, and the pinned rows with its samples."""

    pins: Pins
    matchers: tuple[Matcher, ...]
    times: TimeRange
    task_samples: int


def settings_of(options: Mapping[str, str]) -> Settings:
    """The settings from the file `config`, overridden by options with dotted names."""
    given = {f"STRANDLINE_{_variable(name)}": value for name, value in options.items() if "." in name}
    if unknown := sorted(name for name in options if "." not in name and name.lower() not in _OWN):
        raise OptionUnusable(
            f"there is no option {', '.join(unknown)}",
            remedy=f"Use {', '.join(_OWN[:-1])}, and settings by their dotted names",
        )
    config = options.get("config")
    return load_settings(Path(config) if config else None, dict(os.environ) | given)


def opener_of(options: Mapping[str, str]) -> StoreOpener:
    """The opener of the store, for the driver and the executors."""
    settings = settings_of(options)
    return store_opener(settings, settings.shard.data_folder(os.environ))


def pin_read(options: Mapping[str, str], clock: Clock) -> PinnedRead:
    """Pin the rows that a data frame reads. Raises `HoursNotReady`, `PinnedRowExpired`, and errors in the options."""
    matchers = parse_selector(options["match"])
    require_a_non_empty_matcher(matchers)
    if "start" not in options:
        raise OptionUnusable("the option start is missing", remedy="Give the start of the range, e.g. 2026-11-15T10")
    start, not_ready = parse_moment(options["start"]), options.get("not_ready", "false").lower() == "true"
    task_samples = _positive("task_samples", options.get("task_samples", str(TASK_SAMPLES)))
    with open_deployment(settings_of(options), os.environ, clock) as deployment:
        end = parse_moment(options["end"]) if "end" in options else _end_of_ready(deployment)
        stored = stored_now(deployment, start, end, not_ready=not_ready)
    times = TimeRange(start, end - 1)
    pins = pin_rows(stored.dataset, stored.groups, stored.manifests, times, stored.now)
    return PinnedRead(pins, matchers, times, task_samples)


def import_staged(options: Mapping[str, str], uris: Sequence[str], clock: Clock) -> JobStatus:
    """Import staged Parquet files with a job, in this process. Raises `NotLanded`."""
    settings = settings_of({name: value for name, value in options.items() if "." in name or name.lower() in _OWN})
    plan = plan_import(uris, import_options(settings, Format.PARQUET, {}, clock.now_ms()))
    require_offset_retention(settings, offset_retention_ms(settings, clock))
    with opened_board(settings, os.environ, clock) as board:
        job = add_job(settings, board, planned_import(plan), clock)
        worker(settings, board, clock).run_until_done(job.job)
        ended = board.job(job.job)
        status = JobStatus.of(ended, board.parts(ended))
    if status.state is not BulkJobState.DONE or status.counts.bad:
        raise NotLanded(
            f"job {job.job} is {status.state}, with {status.counts.bad} bad records of {status.counts.records}"
            f"{': ' + status.reason if status.reason else ''}",
            remedy=f"See `strandline job status {job.job}`; the staged files are kept",
        )
    return status


def _end_of_ready(deployment: Deployment) -> int:
    hour = newest_ready_hour(deployment.stored(deployment.topic.now()))
    if hour is None:
        raise OptionUnusable("no hour is ready yet", remedy="Give the options end and not_ready")
    return (hour + 1) * HOUR


def _variable(name: str) -> str:
    section, _, rest = name.upper().partition(".")
    return f"{section}__{rest}"


def _positive(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise OptionUnusable(f"{name} is {text!r}", remedy="It must be a positive integer")
    return int(text)
