"""`strandline demo`: the whole stack at work, from nothing and back to nothing."""

import tempfile
from dataclasses import replace
from pathlib import Path

import click

from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.options import Command, help_with
from strandline.node.cli.stack_display import StackDisplay, stack_options
from strandline.node.demo.show import Demo, Services
from strandline.node.settings.sections import CassandraSettings, KafkaSettings
from strandline.node.stack.stack import Stack
from strandline.setup.installation import Installation


@click.command(
    cls=Command,
    help=help_with(
        "Start a Kafka and a Cassandra of its own in a temporary folder, show every part at work on the same data, and "
        "remove it all again. Nothing else on the machine is touched.",
        "strandline demo",
        "strandline demo --output json",
    ),
)
@pass_context
def command(context: Context) -> None:
    """Show."""
    options = stack_options(context)
    installation = Installation.load()
    with tempfile.TemporaryDirectory(prefix="strandline-demo-") as name, StackDisplay(context.output) as display:
        folder = Path(name)
        # Ports of its own: a stack that is up already may have those of the settings.
        own = replace(options, state_dir=folder / "stack", kafka_port=0, cassandra_port=0)
        with Stack.start(own, on_step=display.on_step, clock=context.clock) as stack:
            display.close()
            services = Services(
                # Only these servers' addresses: the settings' own, with their passwords, are for others.
                kafka=KafkaSettings(bootstrap_servers=(stack.kafka_bootstrap,)),
                cassandra=CassandraSettings(contact_points=(f"{stack.cassandra_host}:{stack.cassandra_port}",)),
                spark=context.settings().spark,
                installation=installation,
            )
            with context.output.steps("Showing the parts") as steps:
                report = Demo(services, folder, steps, context.clock).show()
    context.output.result(report)
