"""`strandline job status`: shows a job."""

import click

from strandline.errors import ExitCode
from strandline.node.bulk.following import follow as followed
from strandline.node.bulk.foreground import interrupts
from strandline.node.bulk.opening import opened_board
from strandline.node.bulk.reports import JobStatus
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with


@click.command(
    cls=Command,
    help=help_with(
        "Show a job's progress, bad records and failed parts. The exit code is 1 if the job is broken, failed or "
        "cancelled. With --follow, the progress is shown until the job has ended or is paused or broken.",
        "strandline job status 20261118T101500Z-a1b2c3",
        "strandline job status 20261118T101500Z-a1b2c3 --follow",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE, ExitCode.INTERRUPTED)),
)
@click.argument("job")
@click.option("--follow", is_flag=True, help="Show the progress until the job ends or stops.")
@pass_context
def command(context: Context, *, job: str, follow: bool) -> ExitCode:
    """Show."""
    clock = context.clock
    with opened_board(context.settings(), context.environ, clock) as board:
        found = board.job(job)
        if not follow:
            status, interrupted = JobStatus.of(found, board.parts(found)), False
        else:
            with (
                interrupts() as stop,
                context.output.steps(f"Following a job of {found.dataset}") as steps,
                steps.step(f"Job {job}") as step,
            ):
                status = followed(board, job, step, clock, stop=stop)
            interrupted = stop.is_set()
    context.output.result(status)
    if warning := status.expiry_warning(clock.now_ms()):
        context.output.note(warning)
    return ExitCode.INTERRUPTED if interrupted else status.exit_code
