"""`strandline job status`: one job."""

import click

from strandline.errors import ExitCode
from strandline.node.bulk.opening import opened_board
from strandline.node.bulk.reports import JobStatus
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with


@click.command(
    cls=Command,
    help=help_with(
        "Show how far a job is, its bad records, and the parts that failed. The exit code is 1 if the job is broken, "
        "has failed or was cancelled.",
        "strandline job status 20261118T101500Z-a1b2c3",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE)),
)
@click.argument("job")
@pass_context
def command(context: Context, *, job: str) -> ExitCode:
    """Show."""
    with opened_board(context.settings(), context.environ, context.clock) as board:
        found = board.job(job)
        status = JobStatus.of(found, board.parts(found))
    context.output.result(status)
    return status.exit_code
