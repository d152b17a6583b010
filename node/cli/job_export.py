"""`strandline job export`: exports series to Parquet files."""

import click

from strandline.errors import ExitCode
from strandline.jobs.exporting.planning import ExportOptions
from strandline.node.bulk.exporting import ExportPlanReport, export_job, open_export, planned_export
from strandline.node.bulk.opening import opened_board
from strandline.node.bulk.placement import Placement, resolve_placement
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.job_running import new_option, note_continued, run_job, run_planned
from strandline.node.cli.options import Command, help_with, on_option
from strandline.node.offsets.deployment import open_deployment
from strandline.node.replay.openers import store_opener
from strandline.recovery.periods import parse_moment


@click.command(
    cls=Command,
    help=help_with(
        "Export series to Parquet files: one folder per UTC day, sorted by metric, labels and time. The file "
        "_manifest.json in it lists the valid files. A repeated export only writes days whose samples have changed. "
        "Times are UTC: 2026-11-15, 2026-11-15T10 or 2026-11-15T10:30.",
        "strandline job export 'up{job=\"node\"}' --to /data/export --start 2026-11-15 --end 2026-11-16",
        "strandline job export '{__name__=~\"http_.*\"}' --to s3://bucket/http --start 2026-11-01 --end 2026-11-15",
        "strandline job export up --to out --start 2026-11-15 --end 2026-11-16 --plan",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE, ExitCode.NOT_READY, ExitCode.INTERRUPTED)),
)
@click.argument("selector")
@click.option("--to", metavar="URI", required=True, help="Target folder: a path, or a URI (s3://, gs://, hdfs://).")
@click.option("--start", metavar="TIME", required=True, help="Start of the range.")
@click.option("--end", metavar="TIME", required=True, help="End of the range, exclusive.")
@click.option("--not-ready", is_flag=True, help="Also export hours that are not ready yet.")
@click.option("--plan", "only_plan", is_flag=True, help="Show the plan, but write nothing.")
@new_option
@on_option
@pass_context
def command(
    context: Context,
    *,
    selector: str,
    to: str,
    start: str,
    end: str,
    not_ready: bool,
    only_plan: bool,
    is_new: bool,
    on: str,
) -> ExitCode:
    """Export."""
    settings, clock = context.settings(), context.clock
    options = ExportOptions(to, selector, parse_moment(start), parse_moment(end))
    title = f"Exporting from {settings.dataset.name}"
    if not only_plan and not is_new:
        with opened_board(settings, context.environ, clock) as board:
            job = open_export(board, options)
        if job is not None:
            note_continued(context, job)
            return run_job(
                context, lambda _board: job, title, resolve_placement(Placement(on), job.kind, ()), on=Placement(on)
            )
    with open_deployment(settings, context.environ, clock) as deployment:
        plan = planned_export(deployment, options, not_ready=not_ready, write=not only_plan)
    planned = export_job(plan)
    if only_plan or planned is None:
        context.output.result(ExportPlanReport.of(plan))
        return ExitCode.OK
    placement = resolve_placement(Placement(on), planned.kind, planned.sources)
    if placement is Placement.SPARK:
        # Raises `StoreOutOfReach` here rather than in each executor.
        store_opener(settings, settings.shard.data_folder(context.environ))
    return run_planned(context, planned, title, on=placement, is_new=True)
