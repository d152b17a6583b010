"""Plans imports: options from the settings and the mapping file, the job, and a preview."""

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from strandline.errors import ExitCode, Fatal
from strandline.jobs.importing.import_kind import IMPORT
from strandline.jobs.importing.part_sources import chunks_of
from strandline.jobs.importing.planning import ImportOptions, ImportPlan
from strandline.jobs.importing.spec import Format
from strandline.jobs.importing.text_parts import TextPart
from strandline.jobs.report import BadLine
from strandline.node.bulk.adding import PlannedJob
from strandline.node.bulk.import_reports import Preview
from strandline.node.settings.sections import Settings
from strandline.time_range import LATEST, TimeRange
from strandline.wire.label_texts import labels_text

_DAY_MS = 86_400_000


class MappingUnusable(Fatal):
    """The mapping file can't be read."""

    exit_code = ExitCode.USAGE


class NothingToImport(Fatal):
    """The files contain no records."""


def read_mapping(path: Path | None) -> Mapping[str, Any]:
    """A mapping file, which is TOML; empty without a path."""
    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MappingUnusable(
            f"the mapping {path} can't be read: {error}", remedy="See docs/pipeline.md for examples of mappings"
        ) from error


def import_options(settings: Settings, format_: Format, mapping: Mapping[str, Any], now: int) -> ImportOptions:
    """The options of an import that is planned now. Samples older than the retention are bad records, because shards
    would purge them.
    """
    ahead = settings.shard.max_sample_ahead
    times = TimeRange(
        now - settings.dataset.retention.milliseconds, LATEST if ahead is None else now + ahead.milliseconds
    )
    jobs = settings.jobs
    return ImportOptions(
        format_, mapping, times, jobs.part_bytes.bytes, jobs.chunk_bytes.bytes, max_record=jobs.max_record.bytes
    )


class ExpiryTooLong(Fatal):
    """Jobs may run longer than the brokers keep the offsets that show what has landed."""

    exit_code = ExitCode.USAGE


def require_offset_retention(settings: Settings, retention_ms: int) -> None:
    """Raises `ExpiryTooLong` unless the brokers' offset retention exceeds `jobs.expiry` by a day, which allows for
    wrong clocks. The committed offsets of a part show how much of it has landed.
    """
    expiry = settings.jobs.expiry
    if expiry.milliseconds + _DAY_MS > retention_ms:
        raise ExpiryTooLong(
            f"jobs.expiry is {expiry}, but the brokers delete the offsets that show how much of a part has landed "
            f"after {retention_ms / _DAY_MS:g} days (offsets.retention.minutes)",
            remedy="Lower jobs.expiry to at least a day less, or raise the brokers' offsets.retention.minutes",
        )


def planned_import(plan: ImportPlan) -> PlannedJob:
    """A plan as a job. Raises `NothingToImport` for one without parts."""
    if not plan.parts:
        raise NothingToImport("the files are empty", remedy="Check the arguments")
    sources = tuple(part.to_json() for part in plan.parts)
    # `packed_bytes`, the maximum size of a chunk, is a constant of the version that plans the job.
    return PlannedJob(
        IMPORT, plan.spec.to_json(), plan.hash, sources, plan_time_fields=frozenset({"times", "packed_bytes"})
    )


def preview(plan: ImportPlan, limit: int) -> Preview:
    """The first samples of a plan, and the bad records of the same chunk."""
    samples: list[tuple[str, int, float]] = []
    bad: list[BadLine] = []
    for part in plan.parts[:1]:
        header_lines = part.of.header_lines if isinstance(part, TextPart) else 0
        with chunks_of(part, plan.spec) as chunks:
            for chunk in chunks:
                bad += [BadLine(part.uri, replace(one, line=one.line + header_lines)) for one in chunk.bad.examples]
                for _, block in chunk.blocks:
                    series = block.series
                    for row, time, value in zip(block.row[:limit], block.times, block.values, strict=False):
                        labels = series.labels[series.starts[row] : series.starts[row + 1]].tobytes()
                        samples.append((labels_text(labels, labels=64, characters=200), int(time), float(value)))
                break
    return Preview(tuple(samples[:limit]), tuple(bad[:limit]))
