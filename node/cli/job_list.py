"""`strandline job list`: lists the jobs of the dataset."""

import click

from strandline.errors import ExitCode
from strandline.node.bulk.opening import opened_board
from strandline.node.bulk.reports import JobList, JobSummary
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with


@click.command(
    cls=Command,
    help=help_with(
        "List the dataset's jobs, oldest first.", "strandline job list", "strandline job list --output json"
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE)),
)
@pass_context
def command(context: Context) -> ExitCode:
    """List."""
    settings = context.settings()
    with opened_board(settings, context.environ, context.clock) as board:
        found = tuple(JobSummary.of_job(job, board.parts(job)) for job in board.jobs())
    context.output.result(JobList(settings.dataset.name, found))
    for warning in filter(None, (one.expiry_warning(context.clock.now_ms()) for one in found)):
        context.output.note(warning)
    return ExitCode.OK
