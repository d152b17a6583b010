"""`strandline job work`: runs a worker for bulk jobs."""

from contextlib import ExitStack

import click

from strandline.errors import ExitCode
from strandline.jobs.board import BulkBoard
from strandline.jobs.transitions import ENDED, has_work, is_announced
from strandline.node.bulk.foreground import interrupts, runner_for, wait_for_due, work_on
from strandline.node.bulk.opening import opened_board
from strandline.node.bulk.placement import Placement, resolve_placement
from strandline.node.bulk.reports import JobList, JobStatus
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with, on_option
from strandline.recovery.leasing import is_open
from strandline.store.bulk_jobs import BulkJob


@click.command(
    cls=Command,
    help=help_with(
        "Work on a job, or on all jobs of the dataset, until nothing is left to do. Several workers can share a job.",
        "strandline job work",
        "strandline job work 20261118T101500Z-a1b2c3 --rate 100000",
        "strandline job work 20261118T101500Z-a1b2c3 --on spark",
        "strandline job work --wait",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE, ExitCode.INTERRUPTED)),
)
@click.argument("job", required=False)
@click.option(
    "--rate",
    metavar="N",
    type=click.FloatRange(min=0, min_open=True),
    help="Limit of this worker in samples per second, in addition to the job's.",
)
@click.option("--wait", is_flag=True, help="Also wait for jobs that are due later (`job send --local-time`).")
@on_option
@pass_context
def command(context: Context, *, job: str | None, rate: float | None, wait: bool, on: str) -> ExitCode:
    """Work."""
    settings, clock = context.settings(), context.clock
    done: list[JobStatus] = []
    with (
        opened_board(settings, context.environ, clock) as board,
        context.output.steps(f"Working on jobs of {settings.dataset.name}") as steps,
        ExitStack() as opened,
    ):
        chosen = _chosen(board, job, clock.now_ms())
        placements = {resolve_placement(Placement(on), one.kind, _open_sources(board, one)) for one in chosen}
        placement = Placement.SPARK if Placement.SPARK in placements else Placement.PROCESS
        warn = context.output.note if Placement(on) is Placement.AUTO else None
        runner = opened.enter_context(runner_for(placement, settings, steps, clock, warn=warn))
        stop = opened.enter_context(interrupts())
        while True:
            for one in chosen:
                with steps.step(f"Job {one.job}") as step:
                    done.append(work_on(settings, board, one, step, clock, rate=rate, stop=stop, runner=runner))
            if not wait or not wait_for_due(board, job or "", clock, stop):
                break
            chosen = _chosen(board, job, clock.now_ms())
    context.output.result(JobList(settings.dataset.name, tuple(done)))
    if stop.is_set():
        return ExitCode.INTERRUPTED
    return max((status.exit_code for status in done), default=ExitCode.OK)


def _chosen(board: BulkBoard, only: str | None, now: int) -> list[BulkJob]:
    """The jobs to work on."""
    if only is not None:
        return [board.job(only)]
    return [one for one in board.jobs() if has_work(one, now) or not is_announced(one)]


def _open_sources(board: BulkBoard, job: BulkJob) -> list[str]:
    """The sources of the parts that are not done."""
    return [] if job.state in ENDED else [part.source for part in board.parts(job) if is_open(part)]
