"""Options and output of the commands that send requests to a node: its address, the token, time ranges and limits."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

from strandline.errors import ExitCode
from strandline.node.cli.context import Context
from strandline.node.client.addresses import address_of, parse_url
from strandline.node.client.moments import TIME_FORMATS, parse_moment
from strandline.node.client.node_client import DEFAULT_TIMEOUT_S, NodeClient, TimeBounds
from strandline.node.client.tls_verification import TlsVerification
from strandline.node.client.tokens import read_token
from strandline.node.output import Report

NODE_EXIT_CODES = (ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE, ExitCode.NOT_READY)
DEFAULT_LIMIT = 1000

Function = TypeVar("Function", bound=Callable[..., Any])


class NotedReport(Report, Protocol):
    """A report with notes, which are printed on stderr instead of between its lines."""

    def notes(self) -> Iterator[str]: ...


@dataclass(frozen=True, slots=True)
class NodeLocation:
    """The options that locate the node. Without `url`, it is the node of the settings."""

    url: str | None = None
    token_file: Path | None = None
    ca_file: Path | None = None

    def client(self, context: Context, timeout_s: float = DEFAULT_TIMEOUT_S) -> NodeClient:
        """A client of the node. The token is masked in all output. The token of the settings is only sent to the node
        of the settings.
        """
        token = read_token(self.token_file) if self.token_file is not None else None
        if self.url is not None:
            address, verification = parse_url(self.url), TlsVerification(self.ca_file)
        else:
            http = context.settings().http
            address = address_of(http)
            if token is None and http.read_token_file is not None:
                token = http.read_token_file.tokens[0].get_secret_value()
            certificate = http.tls_certificate_file
            own = certificate is not None and self.ca_file is None
            verification = (
                TlsVerification.pinned_to(certificate.content) if own and certificate else TlsVerification(self.ca_file)
            )
        if token is not None:
            context.mask.add([token])
        return NodeClient(address, token=token, verification=verification, timeout_s=timeout_s)


def node_options(function: Function) -> Function:
    """`--url`, `--token-file` and `--ca-file`."""
    path = click.Path(dir_okay=False, path_type=Path)
    for option in (
        click.option(
            "--ca-file", metavar="PATH", type=path, help="Certificates (PEM) of the certificate authority to trust."
        ),
        click.option("--token-file", metavar="PATH", type=path, help="A file that contains the read token."),
        click.option("--url", metavar="URL", help="URL of the node. [default: http.node_address of the settings]"),
    ):
        function = option(function)
    return function


def range_options(function: Function) -> Function:
    """`--start`, `--end` and `--limit`."""
    function = limit_option(function)
    function = click.option("--end", metavar="TIME", help="Only series with samples at or before this time.")(function)
    return click.option(
        "--start", metavar="TIME", help=f"Only series with samples at or after this time: {TIME_FORMATS}."
    )(function)


def limit_option(function: Function) -> Function:
    """`--limit`."""
    return click.option(
        "--limit",
        metavar="N",
        type=click.IntRange(min=0, max=10**9),
        default=DEFAULT_LIMIT,
        show_default=True,
        help="Maximum number of results; 0 for no limit other than the node's.",
    )(function)


@contextmanager
def connected_client(context: Context, place: NodeLocation) -> Iterator[NodeClient]:
    """A client of the node, closed at the end of the block."""
    with closing(place.client(context)) as client:
        yield client


def time_bounds(context: Context, start: str | None, end: str | None) -> TimeBounds:
    """The bounds given by `--start` and `--end`. Raises `click.BadParameter`."""
    now = context.clock.now_ms()
    first, last = optional_time("--start", start, now), optional_time("--end", end, now)
    if first is not None and last is not None and last < first:
        raise click.BadParameter(f"{end} is before --start", param_hint="--end")
    return TimeBounds(first, last)


def optional_time(option: str, written: str | None, now_ms: int) -> int | None:
    """The time that an option gives, in milliseconds; None if it is not given."""
    return None if written is None else parse_time_option(option, written, now_ms)


def parse_time_option(option: str, written: str, now_ms: int) -> int:
    """The time that an option gives, in milliseconds. Raises `click.BadParameter`."""
    return parse_option(option, written, lambda text: parse_moment(text, now_ms))


def parse_option(option: str, written: str, read: Callable[[str], int]) -> int:
    """The parsed value of an option. Raises `click.BadParameter`."""
    try:
        return read(written)
    except ValueError as error:
        raise click.BadParameter(f"{written!r} is {error}", param_hint=option) from None


def print_report(context: Context, report: NotedReport) -> ExitCode:
    """Print the report on stdout and its notes on stderr."""
    context.output.result(report)
    for note in report.notes():
        click.echo(context.mask.text(f"note: {note}"), err=True)
    return ExitCode.OK
