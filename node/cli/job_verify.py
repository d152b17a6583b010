"""`strandline job verify`: compares what a job has sent with what is stored or in the topic."""

import click

from strandline.errors import ExitCode
from strandline.node.bulk.opening import opened_board
from strandline.node.bulk.verifying import verify_job
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with


@click.command(
    cls=Command,
    help=help_with(
        "Read back what a job has sent, and compare it. For an import, samples of its files are compared with those of"
        " the node, value by value: some series of some parts, or everything with --all. For a job that sent series,"
        " its messages in the topic are counted by part. Nothing is written. Missing and different samples are listed,"
        " and the exit code is 4; it is 6 if samples can't be read yet.",
        "strandline job verify 20261118T101500Z-a1b2c3",
        "strandline job verify 20261118T101500Z-a1b2c3 --all --output json",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE, ExitCode.VERIFY_FAILED, ExitCode.NOT_READY)),
)
@click.argument("job")
@click.option("--all", "all_of_it", is_flag=True, help="Compare every sample of an import.")
@pass_context
def command(context: Context, *, job: str, all_of_it: bool) -> ExitCode:
    """Verify."""
    settings, clock = context.settings(), context.clock
    with (
        opened_board(settings, context.environ, clock) as board,
        context.output.steps(f"Verifying job {job}") as steps,
        steps.step("Parts") as step,
    ):

        def on_progress(parts: int) -> None:
            step.note = f"{parts:,} compared"

        found = verify_job(settings, board, job, clock, all_of_it=all_of_it, on_progress=on_progress)
    context.output.result(found)
    return found.exit_code
