"""`strandline values LABEL [SELECTOR...]`: lists the values of a label."""

from pathlib import Path

import click

from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.name_completion import complete_label, complete_selector
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
        "List the values of a label, one per line: of the series that match any of the selectors, or of all series. "
        "Metrics are the values of __name__. A value with unprintable characters or a leading quote is quoted and "
        "escaped. Queries a node over HTTP; its warnings go to stderr.",
        "strandline values __name__",
        "strandline values instance up --start -1h",
        """strandline values pod '{namespace="shop"}' --limit 0 | wc -l""",
    ),
    epilog=exit_codes(NODE_EXIT_CODES),
)
@click.argument("label", shell_complete=complete_label)
@click.argument("selectors", metavar="[SELECTOR...]", nargs=-1, shell_complete=complete_selector)
@range_options
@node_options
@pass_context
def command(
    context: Context,
    *,
    label: str,
    selectors: tuple[str, ...],
    start: str | None,
    end: str | None,
    limit: int,
    url: str | None,
    token_file: Path | None,
    ca_file: Path | None,
) -> int:
    """List the values."""
    if not label:
        raise click.BadParameter("the label name is empty", param_hint="LABEL")
    within = time_bounds(context, start, end)
    with connected_client(context, NodeLocation(url, token_file, ca_file)) as client:
        answer = client.label_values(label, selectors, within, limit)
    return print_report(context, NamesReport.of(answer, "values"))
