"""`strandline job resume`: resumes a job."""

import click

from strandline.errors import ExitCode
from strandline.node.bulk.changing import resume_job
from strandline.node.bulk.opening import opened_board
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with


@click.command(
    cls=Command,
    help=help_with(
        "Resume a job that is paused, broken or failed. Failed parts are retried, and the error rate is counted from "
        "zero. Workers then continue the job: `strandline job work`.",
        "strandline job resume 20261118T101500Z-a1b2c3",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE)),
)
@click.argument("job")
@pass_context
def command(context: Context, *, job: str) -> ExitCode:
    """Resume."""
    with opened_board(context.settings(), context.environ, context.clock) as board:
        status = resume_job(board, job, context.clock)
    context.output.result(status)
    return ExitCode.OK
