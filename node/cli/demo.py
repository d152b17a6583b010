"""`strandline demo`: the whole of it at work, from nothing and back to nothing."""

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
        "Start a Kafka and a Cassandra of its own in a temporary folder, a gateway and a node with two shards; write "
        "to them, kill the node with kill -9, let it recover with a replay on Spark, and prove that every sample that "
        "was acknowledged is there, once. Then it serves until Ctrl-C, and removes it all again. Nothing else on the "
        "machine is touched.",
        "strandline demo",
        "strandline demo --once --output json",
        "strandline demo --series 20000",
    ),
)
@click.option("--once", is_flag=True, envvar="RUN_ONCE", help="End after the proof. RUN_ONCE=1 does the same.")
@click.option(
    "--series", type=click.IntRange(1_000, 10_000_000), default=_SERIES, show_default=True, help="How many series."
)
@click.option(
    "--flush-interval",
    type=click.IntRange(2, 60),
    default=FLUSH_S,
    show_default=True,
    help="How many seconds a bucket covers; a divisor of 3600. Short ones suit few series.",
)
@pass_context
def command(context: Context, *, once: bool, series: int, flush_interval: int) -> None:
    """Show."""
    options = stack_options(context)
    with tempfile.TemporaryDirectory(prefix="strandline-demo-") as name, StackDisplay(context.output) as display:
        folder = Path(name)
        # Ports of its own: a stack that is up already may have those of the settings.
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
        f"\nIt goes on until Ctrl-C.\n"
        f"  status page   {node}/\n"
        f"  metrics       {node}/metrics\n"
        f"  remote write  http://{scenario.addresses.gateway}/api/v1/write\n"
        f"  to try        curl '{node}/api/v1/series?match[]=fleet_metric_0_total&limit=3'"
    )
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    ended.wait()
