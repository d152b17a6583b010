"""What the commands that plan jobs have in common: a job is added, or one that does the same is continued, and then
worked on until it ends.
"""

from collections.abc import Callable

import click

from strandline.errors import ExitCode
from strandline.jobs.board import BulkBoard
from strandline.jobs.rate import changed_rate
from strandline.node.bulk.adding import PlannedJob, add_job
from strandline.node.bulk.foreground import interrupts, runner_for, work_on
from strandline.node.bulk.open_jobs import open_job
from strandline.node.bulk.opening import opened_board
from strandline.node.bulk.placement import Placement, resolve_placement
from strandline.node.cli.context import Context
from strandline.node.recovering.formatting import moment
from strandline.store.bulk_jobs import BulkJob, BulkJobState

new_option = click.option(
    "--new", "is_new", is_flag=True, help="Plan another job, even if the same one is still to be done."
)


def run_planned(
    context: Context, planned: PlannedJob, title: str, *, on: Placement, rate: float | None = None, is_new: bool = False
) -> ExitCode:
    """Add a job, or go on with one that is the same unless another one is to be planned; work on it in the foreground,
    and show how it stands then. All of its workers together land at most `rate` samples a second.
    """
    placement = resolve_placement(on, planned.kind, planned.sources)

    def choose(board: BulkBoard) -> BulkJob:
        return added_or_open(context, board, planned, rate=rate, is_new=is_new)

    return run_job(context, choose, title, placement, on=on)


def run_job(
    context: Context, choose: Callable[[BulkBoard], BulkJob], title: str, placement: Placement, *, on: Placement
) -> ExitCode:
    """Work on a job in the foreground, and show how it stands then. It is chosen once Spark runs, if it is to."""
    settings, clock = context.settings(), context.clock
    with (
        opened_board(settings, context.environ, clock) as board,
        context.output.steps(title) as steps,
        runner_for(
            placement, settings, steps, clock, warn=context.output.note if on is Placement.AUTO else None
        ) as runner,
        interrupts() as stop,
    ):
        job = choose(board)
        with steps.step(f"Job {job.job}") as step:
            status = work_on(settings, board, job, step, clock, stop=stop, runner=runner)
    context.output.result(status)
    if stop.is_set() and status.state is BulkJobState.RUNNING:
        context.output.note(f"Interrupted. `strandline job work {job.job}` goes on, and so does the same command.")
        return ExitCode.INTERRUPTED
    return status.exit_code


def added_or_open(
    context: Context, board: BulkBoard, planned: PlannedJob, *, rate: float | None, is_new: bool
) -> BulkJob:
    """A job that is the same and still to be done; else the plan, added to the store. It has this rate from now on, if
    one is given. Raises `JobIdle`.
    """
    job = None if is_new else open_job(board, planned)
    if job is None:
        return add_job(context.settings(), board, planned, context.clock, rate)
    note_continued(context, job)
    return job if rate is None else board.change(job, lambda one: changed_rate(one, rate))


def note_continued(context: Context, job: BulkJob) -> None:
    """That a job is gone on with."""
    context.output.note(
        f"Going on with job {job.job}, which does the same and was planned at {moment(job.created_at)}. --new plans "
        "another one."
    )
