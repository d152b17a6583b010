"""`strandline series SELECTOR...`: lists series."""

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
from strandline.node.client.reports import SeriesReport


@click.command(
    cls=Command,
    help=help_with(
        "List the series that match any of the selectors, one per line, sorted by labels. A selector is written as in "
        'PromQL: a metric name, matchers in braces (=, !=, =~, !~), or both; {job=~".+"} matches every job. Queries a '
        "node over HTTP; its warnings go to stderr.",
        "strandline series up",
        """strandline series '{job="node", instance=~"host-0.*"}' --start -1h""",
        "strandline series up --start yesterday --end today --output json",
        "strandline series up --url https://node-1.example.com:9460 --token-file ~/.strandline-token",
    ),
    epilog=exit_codes(NODE_EXIT_CODES),
)
@click.argument("selectors", metavar="SELECTOR...", nargs=-1, required=True, shell_complete=complete_selector)
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
    """List series."""
    within = time_bounds(context, start, end)
    with connected_client(context, NodeLocation(url, token_file, ca_file)) as client:
        answer = client.series(selectors, within, limit)
    return print_report(context, SeriesReport.of(answer))
