"""`strandline ready HOUR|DAY`: checks whether an hour or day is completely stored."""

import click

from strandline.errors import ExitCode
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with
from strandline.node.offsets.deployment import open_deployment
from strandline.node.offsets.hours import wait_for
from strandline.recovery.periods import parse_period


@click.command(
    cls=Command,
    help=help_with(
        "Check whether a UTC hour or day is ready: all partitions are stored up to its end. If so, show its revision, "
        "which rises with late samples, and accepted losses. If not, show which partitions are behind, and by how "
        "much. Hours before the manifests' history are unknown, and never ready.",
        "strandline ready 2026-11-15T10",
        "strandline ready 2026-11-15 --output json",
        "strandline ready 2026-11-15T10 --wait 600 && start-the-batch",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE, ExitCode.NOT_READY)),
)
@click.argument("period", metavar="HOUR|DAY")
@click.option(
    "--wait",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=0.0,
    help="Wait up to this long until it is ready. [default: don't wait]",
)
@pass_context
def command(context: Context, *, period: str, wait: float) -> ExitCode:
    """Check the period."""
    parsed = parse_period(period)
    with open_deployment(context.settings(), context.environ, context.clock) as deployment:
        report = wait_for(deployment, parsed, wait)
    context.output.result(report)
    return ExitCode.OK if report.ready else ExitCode.NOT_READY
