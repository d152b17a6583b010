"""`strandline job import | export | send | verify | list | status | work | pause | ...`: bulk jobs."""

import click

from strandline.node.cli.options import LazyCommand, LazyGroup, help_with

COMMANDS = {
    "cancel": LazyCommand("strandline.node.cli.job_cancel", "Cancel a job. What has landed stays."),
    "delete": LazyCommand("strandline.node.cli.job_delete", "Remove an ended job from the list."),
    "export": LazyCommand("strandline.node.cli.job_export", "Export series to Parquet files, one folder per day."),
    "import": LazyCommand("strandline.node.cli.job_import", "Import files into the dataset."),
    "list": LazyCommand("strandline.node.cli.job_list", "List the dataset's jobs."),
    "pause": LazyCommand("strandline.node.cli.job_pause", "Pause a job."),
    "resume": LazyCommand("strandline.node.cli.job_resume", "Resume a job that is paused, broken or failed."),
    "send": LazyCommand("strandline.node.cli.job_send", "Send series to another topic."),
    "status": LazyCommand("strandline.node.cli.job_status", "Show a job's progress and errors."),
    "verify": LazyCommand("strandline.node.cli.job_verify", "Read back what a job has sent, and compare it."),
    "work": LazyCommand("strandline.node.cli.job_work", "Work on jobs until there is nothing left to do."),
}


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    help=help_with(
        "Bulk jobs: import, export or send large amounts of data. A job is divided into parts, each part takes effect "
        "exactly once, and workers can crash at any time.",
        "strandline job import 'data/*.csv' --format csv --mapping mapping.toml",
        "strandline job export up --to /data/export --start 2026-11-15 --end 2026-11-16",
        "strandline job list",
        "strandline job pause 20261118T101500Z-a1b2c3",
    ),
)
def command() -> None:
    """The group."""
