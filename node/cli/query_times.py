"""Options for the times of a PromQL query: one time, or the steps of a range."""

from dataclasses import dataclass

import click

from strandline.node.cli.node_options import Function, parse_option, parse_time_option
from strandline.node.client.moments import TIME_FORMATS, default_step, parse_length
from strandline.node.client.node_client import Steps

# Number of steps of a range without `--step`.
_DEFAULT_POINTS = 60


def query_time_options(function: Function) -> Function:
    """`--time`, `--start`, `--end` and `--step`, for `QueryTimeOptions`."""
    for option in (
        click.option(
            "--step",
            metavar="DURATION",
            help="Step of a range: 15s, 5m. [default: a 60th of the range, at most 5m]",
        ),
        click.option("--end", metavar="TIME", help="End of a range. [default: now]"),
        click.option("--start", metavar="TIME", help="Start of a range."),
        click.option("--time", metavar="TIME", help=f"Evaluation time: {TIME_FORMATS}. [default: now]"),
    ):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True)
class QueryTimeOptions:
    """The values of the options, not parsed."""

    time: str | None = None
    start: str | None = None
    end: str | None = None
    step: str | None = None

    def steps(self, now_ms: int) -> Steps | None:
        """The steps of a range query; None for an instant query. Raises `click.UsageError`."""
        if self.start is None:
            if self.end is not None or self.step is not None:
                raise click.UsageError("--end and --step need --start")
            return None
        if self.time is not None:
            raise click.UsageError("--time and --start exclude each other: one time, or a range")
        start = parse_time_option("--start", self.start, now_ms)
        end = parse_time_option("--end", self.end or "now", now_ms)
        if end < start:
            raise click.BadParameter(f"{self.end or 'now'} is before --start", param_hint="--end")
        step = default_step(end - start, _DEFAULT_POINTS)
        return Steps(start, end, step if self.step is None else parse_option("--step", self.step, parse_length))

    def moment(self, now_ms: int) -> int:
        """The evaluation time of an instant query."""
        return parse_time_option("--time", self.time or "now", now_ms)
