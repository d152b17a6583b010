"""`strandline labels [SELECTOR...]`: lists label names."""

from pathlib import Path

import click

from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.name_completion import complete_selector
from strandline.node.cli.node_options import (
    NODE_EXIT_CODES,
    NodeLocation,
    connected_client,
    node_options,
    print_report,
    range_options,
    time_bounds,
)
from strandline.node.cli.options import Command, help_with
from strandline.node.client.reports import NamesReport


@click.command(
    cls=Command,
    help=help_with(
        "List label names, one per line: of the series that match any of the selectors, or of all series. Queries a "
        "node over HTTP; its warnings go to stderr.",
        "strandline labels",
        "strandline labels up --start -1d",
        """strandline labels '{job="node"}' --output json""",
    ),
    epilog=exit_codes(NODE_EXIT_CODES),
)
@click.argument("selectors", metavar="[SELECTOR...]", nargs=-1, shell_complete=complete_selector)
@range_options
@node_options
@pass_context
def command(
    context: Context,
    *,
    selectors: tuple[str, ...],
    start: str | None,
    end: str | None,
    limit: int,
    url: str | None,
    token_file: Path | None,
    ca_file: Path | None,
) -> int:
    """List label names."""
    within = time_bounds(context, start, end)
    with connected_client(context, NodeLocation(url, token_file, ca_file)) as client:
        answer = client.label_names(selectors, within, limit)
    return print_report(context, NamesReport.of(answer, "names"))
