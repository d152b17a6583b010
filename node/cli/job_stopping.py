"""Shared by `strandline job pause` and `strandline job cancel`."""

import click

from strandline.errors import ExitCode
from strandline.node.bulk.opening import opened_board
from strandline.node.bulk.stopping import stop_job
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with
from strandline.store.bulk_jobs import Wanted


def stopping_command(verb: str, wanted: Wanted, text: str) -> click.Command:
    """A command that pauses or cancels a job and waits until this has taken effect."""

    @click.command(
        verb,
        cls=Command,
        help=help_with(text, f"strandline job {verb} 20261118T101500Z-a1b2c3"),
        epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE)),
    )
    @click.argument("job")
    @pass_context
    def command(context: Context, *, job: str) -> ExitCode:
        settings, clock = context.settings(), context.clock
        with opened_board(settings, context.environ, clock) as board:
            status = stop_job(settings, board, job, wanted, clock)
        context.output.result(status)
        if status.wanted:
            context.output.note(
                "Workers still run parts of it. Check `strandline job status` until they released them."
            )
        return ExitCode.OK

    return command
