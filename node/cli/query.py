"""`strandline query QUERY`: evaluates a PromQL query at one time or over a range."""

import shutil
import sys
from pathlib import Path

import click

from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.name_completion import complete_selector
from strandline.node.cli.node_options import (
    NODE_EXIT_CODES,
    NodeLocation,
    connected_client,
    limit_option,
    node_options,
    print_report,
)
from strandline.node.cli.options import Command, help_with
from strandline.node.cli.query_times import QueryTimeOptions, query_time_options
from strandline.node.client.reports import QueryReport

LAYOUTS = ("text", "json", "csv", "plot")

# In characters. The margin is for the text beside a plot.
_MAX_PLOT_WIDTH = 60
_PLOT_MARGIN = 40
_MIN_PLOT_WIDTH = 10


@click.command(
    cls=Command,
    layouts=LAYOUTS,
    help=help_with(
        "Evaluate a PromQL query at one time (now, or --time), or at each step of a range (--start, --end, --step). A "
        "range is plotted on a terminal and printed as a table elsewhere, unless --output is given. Times are UTC. "
        "Queries a node over HTTP; its warnings and infos go to stderr.",
        "strandline query up",
        """strandline query 'sum by (job) (rate(http_requests_total[5m]))' --time "1h ago" """.rstrip(),
        "strandline query 'rate(http_requests_total[5m])' --start -6h --output plot",
        "strandline query up --start 2026-11-16T10:00:00Z --end 2026-11-16T11:00:00Z --step 15s --output csv",
    ),
    epilog=exit_codes(NODE_EXIT_CODES),
)
@click.argument("query", shell_complete=complete_selector)
@query_time_options
@limit_option
@node_options
@pass_context
def command(
    context: Context,
    *,
    query: str,
    time: str | None,
    start: str | None,
    end: str | None,
    step: str | None,
    limit: int,
    url: str | None,
    token_file: Path | None,
    ca_file: Path | None,
) -> int:
    """Evaluate the query."""
    times, now = QueryTimeOptions(time, start, end, step), context.clock.now_ms()
    steps = times.steps(now)
    moment, as_csv = times.moment(now), context.layout == "csv"
    if steps is None and context.layout == "plot":
        raise click.UsageError("--output plot needs a range: give --start")
    with connected_client(context, NodeLocation(url, token_file, ca_file)) as client:
        if steps is None:
            return print_report(context, QueryReport.of(client.query(query, moment, limit), limit, as_csv=as_csv))
        answer = client.query_range(query, steps, limit)
    width = _plot_width(context.layout)
    return print_report(context, QueryReport.of(answer, limit, steps=steps, plot_width=width, as_csv=as_csv))


def _plot_width(layout: str | None) -> int | None:
    """The maximum width of plots; None for a table. Without `--output plot`, only terminals that can show the
    characters of a plot get one.
    """
    can_show = sys.stdout.isatty() and "utf" in (sys.stdout.encoding or "").lower()
    if not (can_show if layout is None else layout == "plot"):
        return None
    columns = shutil.get_terminal_size().columns
    return max(_MIN_PLOT_WIDTH, min(_MAX_PLOT_WIDTH, columns - _PLOT_MARGIN))
