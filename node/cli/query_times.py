"""Options that say at which times a PromQL query is evaluated: at a moment, or at each step of a range."""

from dataclasses import dataclass

import click

from strandline.node.cli.node_options import Function, parse_option, parse_time_option
from strandline.node.client.moments import TIME_FORMATS, default_step, parse_length
from strandline.node.client.node_client import Steps

# How many steps a range has whose step is not given.
_DEFAULT_POINTS = 60


def query_time_options(function: Function) -> Function:
    """`--time`, `--start`, `--end` and `--step`, for `QueryTimeOptions`."""
    for option in (
        click.option(
            "--step",
            metavar="DURATION",
            help="Between two moments: 15s, 5m. [default: a 60th of the range, 5m at most]",
        ),
        click.option("--end", metavar="TIME", help="The last moment of a range. [default: now]"),
        click.option("--start", metavar="TIME", help="The first moment of a range."),
        click.option("--time", metavar="TIME", help=f"The moment to look at: {TIME_FORMATS}. [default: now]"),
    ):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True)
class QueryTimeOptions:
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
        start = parse_time_option("--start", self.start, now_ms)
        end = parse_time_option("--end", self.end or "now", now_ms)
        if end < start:
            raise click.BadParameter(f"it lies before --start: {self.end or 'now'}", param_hint="--end")
        step = default_step(end - start, _DEFAULT_POINTS)
        return Steps(start, end, step if self.step is None else parse_option("--step", self.step, parse_length))

    def moment(self, now_ms: int) -> int:
        """That of a query at one moment."""
        return parse_time_option("--time", self.time or "now", now_ms)
