"""`strandline job send`: sends series to another topic."""

from pathlib import Path

import click

from strandline.errors import ExitCode
from strandline.jobs.control_sample import ControlSample
from strandline.jobs.sending.send_kind import SEND
from strandline.jobs.sending.zones import LocalTime
from strandline.node.bulk.foreground import interrupts, runner_for, work_on
from strandline.node.bulk.importing import require_offset_retention
from strandline.node.bulk.opening import offset_retention_ms, opened_board
from strandline.node.bulk.placement import Placement, resolve_placement
from strandline.node.bulk.reports import JobList, JobStatus
from strandline.node.bulk.sending import SendOptions, SendPlanReport, plan_send, read_template
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.job_running import added_or_open, new_option
from strandline.node.cli.node_options import optional_time
from strandline.node.cli.options import Command, help_with, on_option
from strandline.node.client.moments import TIME_FORMATS
from strandline.store.bulk_jobs import BulkJobState


@click.command(
    cls=Command,
    help=help_with(
        "Send one message per series that SELECTOR matches to a Kafka topic: plan a job and work on it in the "
        "foreground. Each message is sent exactly once, even if the command is interrupted: continue with `strandline "
        "job work`. With --local-time, there is one job per UTC offset, which `strandline job work` starts when it is "
        "due.",
        "strandline job send 'up{job=\"node\"}' --to alerts --template template.toml --plan",
        "strandline job send up --to offers --template t.toml --control 0.05 --seed 7",
        "strandline job send up --to offers --template t.toml --timezone-label tz --local-time 09:00",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE, ExitCode.NOT_READY, ExitCode.INTERRUPTED)),
)
@click.argument("selector")
@click.option("--to", "topic", metavar="TOPIC", required=True, help="Target topic. It must exist.")
@click.option(
    "--template",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="TOML file that defines the messages.",
)
@click.option("--at", "at", metavar="TIME", help=f"Time at which series are selected: {TIME_FORMATS}. [default: now]")
@click.option(
    "--control",
    metavar="FRACTION",
    type=click.FloatRange(0, 1),
    default=0.0,
    help="Leave out this share of the series as a control sample, and list them in jobs.events_folder.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**64 - 1),
    default=0,
    help="Seed of the control sample: the same seed selects the same series.",
)
@click.option("--timezone-label", "zone_label", metavar="LABEL", help="Label with the time zone of a series.")
@click.option("--local-time", metavar="HH:MM", help="When messages are due, in the time zone of each series.")
@click.option("--plan", "only_plan", is_flag=True, help="Show the plan, but write nothing.")
@click.option(
    "--rate",
    metavar="N",
    type=click.FloatRange(min=0, min_open=True),
    help="Limit of all workers of a job together, in messages per second.",
)
@new_option
@on_option
@pass_context
def command(
    context: Context,
    *,
    selector: str,
    topic: str,
    template: Path,
    at: str | None,
    control: float,
    seed: int,
    zone_label: str | None,
    local_time: str | None,
    only_plan: bool,
    rate: float | None,
    is_new: bool,
    on: str,
) -> ExitCode:
    """Send."""
    settings, clock = context.settings(), context.clock
    if (zone_label is None) != (local_time is None):
        raise click.UsageError("--timezone-label and --local-time must be given together")
    now = clock.now_ms()
    evaluated = optional_time("--at", at, now)
    options = SendOptions(
        selector,
        topic,
        read_template(template),
        now if evaluated is None else evaluated,
        ControlSample(control, seed),
        zone_label or "",
        _local_time(local_time),
        is_at_fixed=evaluated is not None,
    )
    plan = plan_send(settings, options, clock)
    if only_plan:
        context.output.result(SendPlanReport.of(plan))
        return ExitCode.OK
    require_offset_retention(settings, offset_retention_ms(settings, clock))
    done: list[JobStatus] = []
    with (
        opened_board(settings, context.environ, clock) as board,
        context.output.steps(f"Sending series of {settings.dataset.name} to {topic}") as steps,
        runner_for(resolve_placement(Placement(on), SEND, ()), settings, steps, clock) as runner,
        interrupts() as stop,
    ):
        jobs = [added_or_open(context, board, one.job(), rate=rate, is_new=is_new) for one in plan.jobs]
        for job in jobs:
            with steps.step(f"Job {job.job}") as step:
                done.append(work_on(settings, board, job, step, clock, stop=stop, runner=runner))
    context.output.result(done[0] if len(done) == 1 else JobList(settings.dataset.name, tuple(done)))
    if any(one.state is BulkJobState.PLANNED for one in done):
        context.output.note(
            "Some jobs are not due yet. They need a worker when they are: `strandline job work --wait`."
        )
    if stop.is_set() and any(one.state in (BulkJobState.RUNNING, BulkJobState.COMPLETING) for one in done):
        context.output.note("Interrupted. To continue, run `strandline job work`.")
        return ExitCode.INTERRUPTED
    return max((one.exit_code for one in done), default=ExitCode.OK)


def _local_time(written: str | None) -> LocalTime | None:
    try:
        return LocalTime.parse(written) if written is not None else None
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--local-time") from None
