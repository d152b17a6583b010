"""`strandline job delete`: remove an ended job."""

from dataclasses import dataclass

import click

from strandline.errors import ExitCode
from strandline.node.bulk.changing import delete_job
from strandline.node.bulk.opening import opened_board
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with
from strandline.node.output import Block


@dataclass(frozen=True, slots=True)
class Deleted:
    """A job that was removed."""

    job: str

    def blocks(self) -> list[Block]:
        """A line."""
        return [f"Job {self.job} was removed. Its samples stay."]


@click.command(
    cls=Command,
    help=help_with(
        "Remove an ended job and its report from the store. Its samples stay.",
        "strandline job delete 20261118T101500Z-a1b2c3 --yes",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE)),
)
@click.argument("job")
@click.option("--yes", is_flag=True, help="Confirm; the report is lost.")
@pass_context
def command(context: Context, *, job: str, yes: bool) -> ExitCode:
    """Delete."""
    if not yes:
        raise click.UsageError(f"the report of job {job} would be lost: add --yes")
    with opened_board(context.settings(), context.environ, context.clock) as board:
        delete_job(board, job)
    context.output.result(Deleted(job))
    return ExitCode.OK
