"""`strandline job work`: work on jobs."""

import click

from strandline.errors import ExitCode
from strandline.jobs.transitions import is_going
from strandline.node.bulk.foreground import interrupts, wait_for_due, work_on
from strandline.node.bulk.opening import opened_board
from strandline.node.bulk.reports import JobList, JobStatus
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with


@click.command(
    cls=Command,
    help=help_with(
        "Work on a job, or on all jobs of the dataset, until there is nothing left to do. Several workers share a job.",
        "strandline job work",
        "strandline job work 20261118T101500Z-a1b2c3 --rate 100000",
        "strandline job work --wait",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE, ExitCode.INTERRUPTED)),
)
@click.argument("job", required=False)
@click.option(
    "--rate", metavar="N", type=click.FloatRange(min=0, min_open=True), help="Land at most N samples a second."
)
@click.option("--wait", is_flag=True, help="Also wait for jobs that are due later (`job send --local-time`).")
@pass_context
def command(context: Context, *, job: str | None, rate: float | None, wait: bool) -> ExitCode:
    """Work."""
    settings, clock = context.settings(), context.clock
    done: list[JobStatus] = []
    with (
        opened_board(settings, context.environ, clock) as board,
        interrupts() as stop,
        context.output.steps(f"Working on jobs of {settings.dataset.name}") as steps,
    ):
        while True:
            now = clock.now_ms()
            chosen = [board.job(job)] if job is not None else [one for one in board.jobs() if is_going(one, now)]
            for one in chosen:
                with steps.step(f"Job {one.job}") as step:
                    done.append(work_on(settings, board, one, step, clock, rate=rate, stop=stop))
            if not wait or not wait_for_due(board, job or "", clock, stop):
                break
    context.output.result(JobList(settings.dataset.name, tuple(done)))
    if stop.is_set():
        return ExitCode.INTERRUPTED
    return max((status.exit_code for status in done), default=ExitCode.OK)
