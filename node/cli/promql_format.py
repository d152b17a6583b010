"""`strandline promql format QUERY`: formats a query as Prometheus does."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import click

from strandline.errors import ExitCode
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with
from strandline.node.promql_tools.queries import read
from strandline.promql.parser import parse
from strandline.promql.printing import format_query


@dataclass(frozen=True, slots=True)
class Formatted:
    """A formatted query."""

    query: str

    def blocks(self) -> Iterator[str]:
        """Its lines."""
        yield self.query


@click.command(
    cls=Command,
    help=help_with(
        "Check a query and format it as Prometheus does: lines of up to 100 characters, indented by two spaces per "
        "level. - reads the query from stdin.",
        "strandline promql format 'sum(rate(http_requests_total[5m]))by(job)'",
        "strandline promql format - < query.promql",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.USAGE)),
)
@click.argument("query")
@pass_context
def command(context: Context, *, query: str) -> None:
    """Format."""
    text = sys.stdin.read() if query == "-" else query
    context.output.result(Formatted(read(text, lambda written: format_query(parse(written)))))
