"""`strandline promql test | format | explain`: PromQL without a node."""

import click

from strandline.node.cli.options import LazyCommand, LazyGroup, help_with

COMMANDS = {
    "explain": LazyCommand(
        "strandline.node.cli.promql_explain", "Show which parts of a query the shards and the front evaluate."
    ),
    "format": LazyCommand("strandline.node.cli.promql_format", "Format a query as Prometheus does."),
    "test": LazyCommand("strandline.node.cli.promql_test", "Run test scripts in the format of Prometheus' promqltest."),
}


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    help=help_with(
        "Test, format and explain PromQL with the engine of the nodes. No node is needed.",
        "strandline promql test rules.test",
        "strandline promql format 'sum(rate(x[5m]))by(job)'",
        "strandline promql explain 'sum by (job) (rate(http_requests_total[5m]))' --start -1h",
    ),
)
def command() -> None:
    """The group."""
