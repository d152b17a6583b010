"""Shared by the commands that plan jobs: add a job, or continue an identical open one, and work on it until it ends."""

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

new_option = click.option("--new", "is_new", is_flag=True, help="Plan a new job even if an identical one is open.")


def run_planned(
    context: Context, planned: PlannedJob, title: str, *, on: Placement, rate: float | None = None, is_new: bool = False
) -> ExitCode:
    """Add a job, or continue an identical open one unless `is_new`. Work on it in the foreground, and show its status
    at the end. `rate` limits all of its workers together, in samples per second.
    """
    placement = resolve_placement(on, planned.kind, planned.sources)

    def choose(board: BulkBoard) -> BulkJob:
        return added_or_open(context, board, planned, rate=rate, is_new=is_new)

    return run_job(context, choose, title, placement, on=on)


def run_job(
    context: Context, choose: Callable[[BulkBoard], BulkJob], title: str, placement: Placement, *, on: Placement
) -> ExitCode:
    """Work on a job in the foreground, and show its status at the end. `choose` is called after Spark has started."""
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
        context.output.note(f"Interrupted. To continue, run `strandline job work {job.job}` or the same command.")
        return ExitCode.INTERRUPTED
    return status.exit_code


def added_or_open(
    context: Context, board: BulkBoard, planned: PlannedJob, *, rate: float | None, is_new: bool
) -> BulkJob:
    """An identical open job, or else the plan, added to the store. Its rate is set if `rate` is given. Raises
    `JobIdle`.
    """
    job = None if is_new else open_job(board, planned)
    if job is None:
        return add_job(context.settings(), board, planned, context.clock, rate)
    note_continued(context, job)
    return job if rate is None else board.change(job, lambda one: changed_rate(one, rate))


def note_continued(context: Context, job: BulkJob) -> None:
    """Print that an open job is continued."""
    context.output.note(
        f"Continuing the identical job {job.job}, planned at {moment(job.created_at)}. Use --new to plan a new one."
    )
