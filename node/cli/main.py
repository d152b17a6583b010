"""The entry point: the list of commands, and the handling of their errors.

This module and its imports must stay cheap: `strandline --help` must not import Spark, a JVM or a database driver.
"""

import os
import select
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import TextIO

import click

from strandline import __version__
from strandline.clock import SystemClock
from strandline.disk import DiskFull, is_full
from strandline.errors import ExitCode, Fatal, Retryable, StrandlineError
from strandline.node.cli.context import Context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import LazyCommand, LazyGroup, help_with

COMMANDS = {
    "bench": LazyCommand("strandline.node.cli.bench", "Run benchmarks on this machine."),
    "check-config": LazyCommand(
        "strandline.node.cli.check_config", "Check the settings and show where each one comes from."
    ),
    "completion": LazyCommand("strandline.node.cli.completion", "Print a shell completion script."),
    "demo": LazyCommand("strandline.node.cli.demo", "Run all parts on this machine, with a crash and a recovery."),
    "front": LazyCommand("strandline.node.cli.front", "Run a node's HTTP front; started by the node.", hidden=True),
    "gateway": LazyCommand("strandline.node.cli.gateway", "Accept remote writes and write them to Kafka."),
    "install-units": LazyCommand("strandline.node.cli.install_units", "Write systemd units."),
    "job": LazyCommand("strandline.node.cli.job", "Import, export and send data with bulk jobs."),
    "labels": LazyCommand("strandline.node.cli.labels", "List label names."),
    "node": LazyCommand("strandline.node.cli.node", "Run the node: all its shards and the HTTP front."),
    "offsets": LazyCommand("strandline.node.cli.offsets", "Show or rewind checkpoints."),
    "promql": LazyCommand("strandline.node.cli.promql", "Test, format and explain PromQL without a node."),
    "query": LazyCommand("strandline.node.cli.query", "Evaluate a PromQL query on a node."),
    "ready": LazyCommand("strandline.node.cli.ready", "Check whether an hour or day is complete."),
    "recover": LazyCommand("strandline.node.cli.recover", "Plan, run, monitor and verify a recovery."),
    "series": LazyCommand("strandline.node.cli.series", "List the series of a node."),
    "shard": LazyCommand("strandline.node.cli.shard", "Run one shard in the foreground."),
    "stack": LazyCommand("strandline.node.cli.stack", "Run a local Kafka and Cassandra."),
    "values": LazyCommand("strandline.node.cli.values", "List the values of a label."),
}


class UsageError(Fatal):
    """The command line is invalid."""

    exit_code = ExitCode.USAGE


class Interrupted(Retryable):
    """The user pressed Ctrl-C."""

    exit_code = ExitCode.INTERRUPTED


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    help=help_with(
        "Strandline, a time-series indexing storage node.",
        "strandline check-config --config conf/strandline.toml",
        "strandline stack up",
        "strandline stack status --output json",
    ),
    epilog=exit_codes(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def strandline() -> None:
    """The root command."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. All errors are handled here and printed in the format of `--output`."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    context = Context(os.environ, sys.stdout, sys.stderr, SystemClock())
    try:
        try:
            return _run(arguments, context)
        except click.ClickException as error:
            if _requests_json(arguments):
                # The error may precede the option, which was then not parsed.
                context.output_format = "json"
            return _usage_error(error, context)
        except (KeyboardInterrupt, click.Abort):
            context.output.error(Interrupted("interrupted"))
            return ExitCode.INTERRUPTED
        except StrandlineError as error:
            context.output.error(error)
            return error.exit_code
    except BrokenPipeError as error:
        if not _redirect_broken_pipes(sys.stdout, sys.stderr):
            context.output.crash(error)
        return ExitCode.FAILED
    except Exception as error:  # noqa: BLE001 - the last place to report it, with the secrets masked
        if is_full(error):
            # Not a bug, whatever raised it.
            context.output.error(DiskFull(error.filename if isinstance(error, OSError) else None))
        else:
            context.output.crash(error)
        return ExitCode.FAILED


def _run(arguments: list[str], context: Context) -> int:
    """Like `click.Command.main`, which would also suppress broken pipes of other connections, such as to a server."""
    try:
        with strandline.make_context("strandline", arguments, obj=context) as root:
            code = strandline.invoke(root)
    except click.exceptions.Exit as exit_:
        code = exit_.exit_code
    # A command returns an exit code, or None for success.
    return code if isinstance(code, int) else ExitCode.OK


def _usage_error(error: click.ClickException, context: Context) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and context.output_format == "text":
        click.echo(error.format_message(), err=True)
        return ExitCode.USAGE
    message = "Missing command" if isinstance(error, click.exceptions.NoArgsIsHelpError) else error.format_message()
    where = error.ctx if isinstance(error, click.UsageError) else None
    command = where.command_path if where is not None else "strandline"
    context.output.error(UsageError(message.rstrip("."), remedy=f"See `{command} --help`"))
    return ExitCode.USAGE


def _requests_json(arguments: list[str]) -> bool:
    return "--output=json" in arguments or ("--output", "json") in pairwise(arguments)


def _redirect_broken_pipes(*streams: TextIO) -> bool:
    """Whether one of the process's own streams has lost its reader, as in `| head`. Such a stream is redirected to
    /dev/null, so that Python's flush at exit doesn't fail.
    """
    gone = [descriptor for descriptor in map(_descriptor, streams) if descriptor is not None and _is_gone(descriptor)]
    for descriptor in gone:
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, descriptor)
        os.close(devnull)
    return bool(gone)


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError):
        # Not a file, or closed.
        return None


def _is_gone(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))
