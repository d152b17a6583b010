"""The entry point: which commands there are, and what becomes of their errors.

This module and what it imports must stay light: `strandline --help` starts no Spark, no JVM and no database driver.
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
    "bench": LazyCommand("strandline.node.cli.bench", "Measure the real parts on this machine."),
    "check-config": LazyCommand(
        "strandline.node.cli.check_config", "Check the settings and show where each one comes from."
    ),
    "completion": LazyCommand("strandline.node.cli.completion", "Print the completion script of a shell."),
    "demo": LazyCommand("strandline.node.cli.demo", "Show all the parts at work on this machine."),
    "front": LazyCommand("strandline.node.cli.front", "Answer HTTP for a node, which starts this.", hidden=True),
    "gateway": LazyCommand("strandline.node.cli.gateway", "Take remote writes and put them into Kafka."),
    "install-units": LazyCommand("strandline.node.cli.install_units", "Write the units for systemd."),
    "job": LazyCommand("strandline.node.cli.job", "Import files, and watch, pause, resume or cancel such jobs."),
    "labels": LazyCommand("strandline.node.cli.labels", "List the names of labels."),
    "node": LazyCommand("strandline.node.cli.node", "Run the node: all its shards and the HTTP front."),
    "offsets": LazyCommand("strandline.node.cli.offsets", "Show and move what counts as read."),
    "promql": LazyCommand("strandline.node.cli.promql", "Test, format and explain PromQL without a node."),
    "query": LazyCommand("strandline.node.cli.query", "Evaluate a PromQL query on a node."),
    "ready": LazyCommand("strandline.node.cli.ready", "Say whether an hour or a day is complete."),
    "recover": LazyCommand("strandline.node.cli.recover", "Plan, run, watch and verify a recovery."),
    "series": LazyCommand("strandline.node.cli.series", "List the series of a node."),
    "shard": LazyCommand("strandline.node.cli.shard", "Run one shard in the foreground."),
    "stack": LazyCommand("strandline.node.cli.stack", "Run Kafka and Cassandra on this machine."),
    "values": LazyCommand("strandline.node.cli.values", "List the values of a label."),
}


class UsageError(Fatal):
    """The command line can't be understood."""

    exit_code = ExitCode.USAGE


class Interrupted(Retryable):
    """Somebody pressed Ctrl-C."""

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
    """The root of all commands."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Every error ends here, told as `--output` asked."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    context = Context(os.environ, sys.stdout, sys.stderr, SystemClock())
    try:
        try:
            return _run(arguments, context)
        except click.ClickException as error:
            if _asks_for_json(arguments):
                # The error may lie before the option, which then has not been read.
                context.output_format = "json"
            return _usage_error(error, context)
        except (KeyboardInterrupt, click.Abort):
            context.output.error(Interrupted("interrupted"))
            return ExitCode.INTERRUPTED
        except StrandlineError as error:
            context.output.error(error)
            return error.exit_code
    except BrokenPipeError as error:
        if not _silence_broken_pipes(sys.stdout, sys.stderr):
            context.output.crash(error)
        return ExitCode.FAILED
    except Exception as error:  # noqa: BLE001 - the last place to tell of it, and to hide the secrets in it
        if is_full(error):
            # Wherever it was met: no bug, and over once there is room.
            context.output.error(DiskFull(error.filename if isinstance(error, OSError) else None))
        else:
            context.output.crash(error)
        return ExitCode.FAILED


def _run(arguments: list[str], context: Context) -> int:
    """What `click.Command.main` does, but for its swallowing of every broken pipe, a server's included."""
    try:
        with strandline.make_context("strandline", arguments, obj=context) as root:
            code = strandline.invoke(root)
    except click.exceptions.Exit as leave:
        code = leave.exit_code
    # A command returns an exit code, or nothing when all is well.
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


def _asks_for_json(arguments: list[str]) -> bool:
    return "--output=json" in arguments or ("--output", "json") in pairwise(arguments)


def _silence_broken_pipes(*streams: TextIO) -> bool:
    """Whether one of our own streams has lost its reader (as in `| head`). Such a stream is pointed at nothing, so that
    Python's last flush at exit is quiet too.
    """
    gone = [descriptor for descriptor in map(_descriptor, streams) if descriptor is not None and _is_gone(descriptor)]
    for descriptor in gone:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, descriptor)
        os.close(nothing)
    return bool(gone)


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError):
        # Not a file, or one that has been closed.
        return None


def _is_gone(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))
