"""`strandline job import`: imports files into the dataset."""

from dataclasses import replace
from pathlib import Path

import click

from strandline.errors import ExitCode
from strandline.jobs.importing.estimating import estimate_import
from strandline.jobs.importing.planning import plan_import
from strandline.jobs.importing.spec import Format
from strandline.node.bulk.import_reports import PlanReport
from strandline.node.bulk.importing import (
    import_options,
    planned_import,
    preview,
    read_mapping,
    require_offset_retention,
)
from strandline.node.bulk.mapping_options import MappingOptions
from strandline.node.bulk.opening import offset_retention_ms
from strandline.node.bulk.placement import Placement
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.job_running import new_option, run_planned
from strandline.node.cli.options import Command, help_with, on_option


@click.command(
    cls=Command,
    help=help_with(
        "Import files into the dataset: plan a job and work on it in the foreground. SOURCES are paths, patterns or "
        "URIs (s3://, gs://, hdfs://). Each sample lands exactly once, even if the command is interrupted: run it "
        "again to continue, or run `strandline job work`, on this machine or another one.",
        "strandline job import 'data/*.csv' --format csv --mapping mapping.toml --preview 5",
        "strandline job import 'data/*.csv' --format csv --mapping mapping.toml",
        "strandline job import data.csv --format csv --metric cpu_usage --value usage --time at:s --label host",
        "strandline job import metrics.om --format openmetrics --rate 100000",
        "strandline job import 's3://bucket/2026/*.csv' --format csv --mapping mapping.toml --on spark",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE, ExitCode.INTERRUPTED)),
)
@click.argument("sources", nargs=-1, required=True)
@click.option(
    "--format", "format_", type=click.Choice([one.value for one in Format]), required=True, help="Format of the files."
)
@click.option(
    "--mapping",
    type=click.Path(dir_okay=False, path_type=Path),
    help="TOML file that maps columns to metric, value, time and labels.",
)
@click.option("--metric", metavar="NAME", help="Metric of all rows. Options override the mapping file.")
@click.option("--metric-column", metavar="COLUMN", help="Column with the metric.")
@click.option("--value", "values", metavar="COLUMN[=METRIC]", multiple=True, help="Column with values.")
@click.option(
    "--time",
    metavar="COLUMN[:FORMAT]",
    help="Column with the time. FORMAT: s, ms, us, ns, rfc3339, or e.g. '%d.%m.%Y %H:%M'.",
)
@click.option("--timezone", metavar="ZONE", help="Time zone of local times, e.g. Europe/Berlin.")
@click.option("--label", "labels", metavar="[LABEL=]COLUMN", multiple=True, help="Column with a label.")
@click.option("--constant", "constants", metavar="LABEL=VALUE", multiple=True, help="Label of all samples.")
@click.option(
    "--preview",
    "shown",
    metavar="N",
    type=click.IntRange(1, 1_000),
    help="Show the first N samples, but import nothing.",
)
@click.option("--plan", "only_plan", is_flag=True, help="Show files, parts and an estimate, but write nothing.")
@click.option(
    "--rate",
    metavar="N",
    type=click.FloatRange(min=0, min_open=True),
    help="Limit of all workers of the job together, in samples per second.",
)
@click.option(
    "--ordered",
    is_flag=True,
    help="Run parts one after the other. Of samples with the same time, that of the later file wins.",
)
@new_option
@on_option
@pass_context
def command(
    context: Context,
    *,
    sources: tuple[str, ...],
    format_: str,
    mapping: Path | None,
    metric: str | None,
    metric_column: str | None,
    values: tuple[str, ...],
    time: str | None,
    timezone: str | None,
    labels: tuple[str, ...],
    constants: tuple[str, ...],
    shown: int | None,
    only_plan: bool,
    rate: float | None,
    ordered: bool,
    is_new: bool,
    on: str,
) -> ExitCode:
    """Import."""
    settings, clock = context.settings(), context.clock
    given = MappingOptions(metric, metric_column, values, time, timezone, labels, constants)
    mapped = given.applied_to(read_mapping(mapping), Format(format_))
    options = import_options(settings, Format(format_), mapped, clock.now_ms())
    plan = plan_import(sources, replace(options, ordered=ordered))
    if shown is not None:
        context.output.result(preview(plan, shown))
        return ExitCode.OK
    if only_plan:
        estimate = estimate_import(plan, clock) if plan.parts else None
        context.output.result(PlanReport.of(plan, estimate, rate))
        return ExitCode.OK
    planned = planned_import(plan)
    require_offset_retention(settings, offset_retention_ms(settings, clock))
    title = f"Importing into {settings.dataset.name}"
    return run_planned(context, planned, title, on=Placement(on), rate=rate, is_new=is_new)
