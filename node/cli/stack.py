"""`strandline stack up | status | down | logs`: Kafka and Cassandra on this machine."""

from contextlib import suppress

import click

from strandline.errors import ExitCode, Fatal
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.options import Group, help_with
from strandline.node.cli.stack_display import StackDisplay, stack_options
from strandline.node.stack import control, reports
from strandline.node.stack.handshake import Handshake
from strandline.node.stack.keeper import keep, keep_detached
from strandline.node.stack.logs import follow
from strandline.node.stack.stack import Stack
from strandline.node.stack.state import StateFolder
from strandline.node.stack.status import stack_status

_SERVERS = ("kafka", "cassandra")


class NeedsYes(Fatal):
    """Something is to be deleted, and nobody has confirmed it."""

    exit_code = ExitCode.USAGE


class NotAsJson(Fatal):
    """What was asked for has no end, so it can't be one JSON document."""

    exit_code = ExitCode.USAGE


@click.group(
    cls=Group,
    help=help_with(
        "Run Kafka and Cassandra on this machine, from the jars that set-up fetched. They listen on loopback only, and "
        "their data lies below stack.state_dir.",
        "strandline stack up",
        "strandline stack status --output json",
        "strandline stack logs cassandra --follow",
        "strandline stack down",
    ),
)
def command() -> None:
    """The group."""


@command.command(
    help=help_with(
        "Start both servers and return when both are healthy. They stay until `strandline stack down`. An `up` that is "
        "interrupted or killed leaves nothing behind. Where a stack is up already, show its addresses.",
        "strandline stack up",
        "STRANDLINE_STACK__KAFKA_PORT=9092 strandline stack up --foreground",
    )
)
@click.option("--foreground", is_flag=True, help="Stay, and stop the servers on Ctrl-C.")
@click.option("--handshake", type=int, hidden=True, help="The descriptor on which the caller waits for a keeper.")
@pass_context
def up(context: Context, *, foreground: bool, handshake: int | None) -> None:
    """Start."""
    if handshake is not None:
        keep_detached(Handshake.inherited(handshake), clock=context.clock)
        return
    options = stack_options(context)
    output = context.output
    with StackDisplay(output) as display:
        if foreground:

            def on_up(stack: Stack) -> None:
                display.close()
                output.result(reports.addresses(stack.record, stack.folder, started=True))

            keep(options, on_step=display.on_step, on_up=on_up, clock=context.clock)
            return
        record, started = control.start_detached(options, on_step=display.on_step, clock=context.clock)
    output.result(reports.addresses(record, StateFolder(options.state_dir), started=started))


@command.command(
    help=help_with(
        "Check both servers now, as a client does. The exit code is 0 only if both are healthy.",
        "strandline stack status",
        "strandline stack status --output json",
    )
)
@pass_context
def status(context: Context) -> int:
    """Look."""
    found = stack_status(StateFolder(stack_options(context).state_dir), clock=context.clock)
    context.output.result(reports.StatusReport.of(found))
    return ExitCode.OK if found.healthy else ExitCode.FAILED


@command.command(
    help=help_with(
        "Stop both servers. Their data is kept for the next `up`, unless --wipe asks for its removal.",
        "strandline stack down",
        "strandline stack down --wipe --yes",
    )
)
@click.option("--wipe", is_flag=True, help="Remove the data, logs and configuration that the stack made.")
@click.option("--yes", is_flag=True, help="Confirm --wipe.")
@pass_context
def down(context: Context, *, wipe: bool, yes: bool) -> None:
    """Stop."""
    folder = StateFolder(stack_options(context).state_dir)
    if wipe and not yes:
        raise NeedsYes(
            f"--wipe deletes all data of the stack in {folder.root}", remedy="Add --yes if that is what you want"
        )
    stopped = False
    if folder.is_held():
        with context.output.steps("Stopping") as steps, steps.step("Kafka and Cassandra"):
            stopped = control.stop(folder, clock=context.clock)
    removed = folder.wipe() if wipe else []
    context.output.result(reports.Stopped(str(folder.root), stopped=stopped, removed=tuple(map(str, removed))))


@command.command(
    help=help_with(
        "Show the end of the servers' logs.",
        "strandline stack logs",
        "strandline stack logs cassandra -n 200",
        "strandline stack logs kafka --follow",
    )
)
@click.argument("server", type=click.Choice(_SERVERS), required=False)
@click.option("-n", "--lines", type=click.IntRange(min=0), default=20, show_default=True, help="How many lines.")
@click.option("--follow", "following", is_flag=True, help="Go on with the lines that are added, until Ctrl-C.")
@pass_context
def logs(context: Context, *, server: str | None, lines: int, following: bool) -> None:
    """Read."""
    folder = StateFolder(stack_options(context).state_dir)
    paths = [folder.log(name) for name in ([server] if server else _SERVERS)]
    if not following:
        context.output.result(reports.Logs.read(paths, lines))
        return
    if server is None:
        raise click.UsageError("--follow needs the name of one server: kafka or cassandra")
    if context.output_format == "json":
        raise NotAsJson("--follow has no end and so no JSON form", remedy="Leave out --follow or --output json")
    with suppress(KeyboardInterrupt):
        context.output.result(reports.FollowedLog(paths[0], follow(paths[0], lines, clock=context.clock)))
