"""`strandline query EXPRESSION`: the values of an expression, at a moment or over a time."""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from strandline.node.cli.asking import EXITS, Place, asking, limit_option, place_options, read_moment, read_option, tell
from strandline.node.cli.completing import complete_selector
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with
from strandline.node.client.moments import WAYS, default_step, parse_length
from strandline.node.client.node_client import Steps
from strandline.node.client.reports import QueryReport

# How many steps a range has whose step is not given, and how wide a plot is at the most.
_DEFAULT_POINTS = 60
_WIDEST_PLOT = 60
_BESIDE_PLOT = 40
_NARROWEST_PLOT = 10


@dataclass(frozen=True, slots=True)
class Times:
    """What the options say of time, as it was written."""

    time: str | None = None
    start: str | None = None
    end: str | None = None
    step: str | None = None

    def steps(self, now_ms: int) -> Steps | None:
        """Those of a range query; None for a query at one moment. Raises `click.UsageError`."""
        if self.start is None:
            if self.end is not None or self.step is not None:
                raise click.UsageError("--end and --step belong to a range, which --start begins")
            return None
        if self.time is not None:
            raise click.UsageError("--time asks for one moment, and --start for a range; take one of them")
        start = read_moment("--start", self.start, now_ms)
        end = read_moment("--end", self.end or "now", now_ms)
        if end < start:
            raise click.BadParameter(f"it lies before --start: {self.end or 'now'}", param_hint="--end")
        step = default_step(end - start, _DEFAULT_POINTS)
        return Steps(start, end, step if self.step is None else read_option("--step", self.step, parse_length))

    def moment(self, now_ms: int) -> int:
        """That of a query at one moment."""
        return read_moment("--time", self.time or "now", now_ms)


@click.command(
    cls=Command,
    help=help_with(
        "Show the values of a PromQL expression: at a moment (now, unless --time says another), or at each step of a "
        "range. A range is plotted on a terminal, and a table elsewhere. Times are UTC. Asks a node over HTTP; what it "
        "says besides goes to stderr.",
        "strandline query up",
        "strandline query 'sum by (job) (rate(http_requests_total[5m]))'",
        """strandline query 'up{job="node"}' --time "1h ago" """.rstrip(),
        "strandline query up --start -6h",
        "strandline query up --start 2026-11-16T10:00:00Z --end 2026-11-16T11:00:00Z --step 15s --output json",
    ),
    epilog=exit_codes(EXITS),
)
@click.argument("selector", shell_complete=complete_selector)
@click.option("--time", metavar="TIME", help=f"The moment to look at: {WAYS}. [default: now]")
@click.option("--start", metavar="TIME", help="The first moment of a range.")
@click.option("--end", metavar="TIME", help="The last moment of a range. [default: now]")
@click.option(
    "--step",
    metavar="DURATION",
    help="Between two moments: 15s, 5m. [default: a 60th of the range, 5m at most]",
)
@click.option("--plot/--table", "plot", default=None, help="How a range is shown. [default: a plot on a terminal]")
@limit_option
@place_options
@pass_context
def command(
    context: Context,
    *,
    selector: str,
    time: str | None,
    start: str | None,
    end: str | None,
    step: str | None,
    plot: bool | None,
    limit: int,
    url: str | None,
    token_file: Path | None,
    ca_file: Path | None,
) -> int:
    """Ask."""
    times, now = Times(time, start, end, step), context.clock.now_ms()
    steps = times.steps(now)
    moment = times.moment(now)
    with asking(context, Place(url, token_file, ca_file)) as client:
        if steps is None:
            return tell(context, QueryReport.of(client.query(selector, moment, limit), limit))
        answer = client.query_range(selector, steps, limit)
    return tell(context, QueryReport.of(answer, limit, steps=steps, plot_width=_plot_width(wanted=plot)))


def _plot_width(*, wanted: bool | None) -> int | None:
    """How wide plots may be; None for a table. Where characters of a plot can't be shown, nobody gets one unasked."""
    can_show = sys.stdout.isatty() and "utf" in (sys.stdout.encoding or "").lower()
    if not (can_show if wanted is None else wanted):
        return None
    columns = shutil.get_terminal_size().columns
    return max(_NARROWEST_PLOT, min(_WIDEST_PLOT, columns - _BESIDE_PLOT))
