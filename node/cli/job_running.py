"""What `strandline job import` and `job export` have in common: a planned job is added, and worked on until it ends."""

from strandline.errors import ExitCode
from strandline.node.bulk.adding import PlannedJob, add_job
from strandline.node.bulk.foreground import interrupts, runner_for, work_on
from strandline.node.bulk.opening import opened_board
from strandline.node.bulk.placing import Where, placed
from strandline.node.cli.context import Context
from strandline.store.bulk_jobs import BulkJobState


def run_planned(context: Context, planned: PlannedJob, title: str, *, on: Where, rate: float | None = None) -> ExitCode:
    """Add a job, work on it in the foreground, and show how it stands then."""
    settings, clock = context.settings(), context.clock
    where = placed(on, planned.kind, planned.sources)
    with (
        opened_board(settings, context.environ, clock) as board,
        context.output.steps(title) as steps,
        runner_for(where, settings, steps, clock, warn=context.output.note if on is Where.AUTO else None) as runner,
        interrupts() as stop,
    ):
        job = add_job(settings, board, planned, clock)
        with steps.step(f"Job {job.job}") as step:
            status = work_on(settings, board, job, step, clock, rate=rate, stop=stop, runner=runner)
    context.output.result(status)
    if stop.is_set() and status.state is BulkJobState.RUNNING:
        context.output.note(f"Interrupted. `strandline job work {job.job}` goes on.")
        return ExitCode.INTERRUPTED
    return status.exit_code
