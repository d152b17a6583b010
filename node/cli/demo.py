"""`strandline demo`: runs all parts in a temporary folder, with a crash and a recovery."""

import signal
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import click

from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.options import Command, help_with
from strandline.node.cli.stack_display import StackDisplay, stack_options
from strandline.node.demo.scenario import FLUSH_S, Load, Scenario
from strandline.node.stack.stack import Stack

_SERIES = 100_000


@click.command(
    cls=Command,
    help=help_with(
        "Start Kafka, Cassandra, a gateway and a node with two shards in a temporary folder. Write samples, kill the "
        "node with kill -9, let it recover with a replay on Spark, and verify that every acknowledged sample is there "
        "exactly once. Then keep running until Ctrl-C, and remove everything. Nothing else on the machine is changed.",
        "strandline demo",
        "strandline demo --once --output json",
        "strandline demo --series 20000",
    ),
)
@click.option("--once", is_flag=True, envvar="RUN_ONCE", help="Exit after the verification. RUN_ONCE=1 does the same.")
@click.option(
    "--series", type=click.IntRange(1_000, 10_000_000), default=_SERIES, show_default=True, help="Number of series."
)
@click.option(
    "--flush-interval",
    type=click.IntRange(2, 60),
    default=FLUSH_S,
    show_default=True,
    help="Length of a bucket in seconds; a divisor of 3600. Use short buckets for few series.",
)
@pass_context
def command(context: Context, *, once: bool, series: int, flush_interval: int) -> None:
    """Run the demo."""
    options = stack_options(context)
    with tempfile.TemporaryDirectory(prefix="strandline-demo-") as name, StackDisplay(context.output) as display:
        folder = Path(name)
        # Any free ports: another stack may already use those of the settings.
        own = replace(options, state_dir=folder / "stack", kafka_port=0, cassandra_port=0)
        with Stack.start(own, on_step=display.on_step, clock=context.clock) as stack:
            display.close()
            load = Load(series, flush_interval)
            with Scenario(stack, folder, load, clock=context.clock, environ=context.environ) as scenario:
                with context.output.steps("A node under load, killed and recovered") as steps:
                    report = scenario.run(steps)
                context.output.result(report)
                if not once:
                    _serve(context, scenario)


def _serve(context: Context, scenario: Scenario) -> None:
    node = f"http://{scenario.addresses.node}"
    context.output.note(
        f"\nRunning until Ctrl-C.\n"
        f"  status page   {node}/\n"
        f"  metrics       {node}/metrics\n"
        f"  remote write  http://{scenario.addresses.gateway}/api/v1/write\n"
        f"  to try        curl '{node}/api/v1/series?match[]=fleet_metric_0_total&limit=3'"
    )
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    ended.wait()
