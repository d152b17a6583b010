"""`strandline stack up | status | down | logs`: runs a local Kafka and Cassandra."""

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
    """A deletion was not confirmed with --yes."""

    exit_code = ExitCode.USAGE


class NotAsJson(Fatal):
    """The output has no end, so it can't be one JSON document."""

    exit_code = ExitCode.USAGE


@click.group(
    cls=Group,
    help=help_with(
        "Run Kafka and Cassandra on this machine, from the jars that set-up has downloaded. They listen on loopback "
        "only. Their data is below stack.state_dir.",
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
        "Start both servers and return when they are healthy. They run until `strandline stack down`. If the command "
        "is interrupted or killed, the servers are stopped, too. If the stack is already running, show its addresses.",
        "strandline stack up",
        "STRANDLINE_STACK__KAFKA_PORT=9092 strandline stack up --foreground",
    )
)
@click.option("--foreground", is_flag=True, help="Stay in the foreground, and stop the servers on Ctrl-C.")
@click.option(
    "--handshake", type=int, hidden=True, help="File descriptor on which the caller waits for the keeper process."
)
@pass_context
def up(context: Context, *, foreground: bool, handshake: int | None) -> None:
    """Start the servers."""
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
        "Check both servers by connecting as a client. The exit code is 0 only if both are healthy.",
        "strandline stack status",
        "strandline stack status --output json",
    )
)
@pass_context
def status(context: Context) -> int:
    """Check the servers."""
    found = stack_status(StateFolder(stack_options(context).state_dir), clock=context.clock)
    context.output.result(reports.StatusReport.of(found))
    return ExitCode.OK if found.healthy else ExitCode.FAILED


@command.command(
    help=help_with(
        "Stop both servers. Their data is kept for the next `up`, unless --wipe is given.",
        "strandline stack down",
        "strandline stack down --wipe --yes",
    )
)
@click.option("--wipe", is_flag=True, help="Remove the stack's data, logs and configuration.")
@click.option("--yes", is_flag=True, help="Confirm --wipe.")
@pass_context
def down(context: Context, *, wipe: bool, yes: bool) -> None:
    """Stop the servers."""
    folder = StateFolder(stack_options(context).state_dir)
    if wipe and not yes:
        raise NeedsYes(f"--wipe deletes all data of the stack in {folder.root}", remedy="Add --yes to confirm")
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
@click.option("-n", "--lines", type=click.IntRange(min=0), default=20, show_default=True, help="Number of lines.")
@click.option("--follow", "following", is_flag=True, help="Keep printing new lines until Ctrl-C.")
@pass_context
def logs(context: Context, *, server: str | None, lines: int, following: bool) -> None:
    """Show the logs."""
    folder = StateFolder(stack_options(context).state_dir)
    paths = [folder.log(name) for name in ([server] if server else _SERVERS)]
    if not following:
        context.output.result(reports.Logs.read(paths, lines))
        return
    if server is None:
        raise click.UsageError("--follow needs the name of one server: kafka or cassandra")
    if context.output_format == "json":
        raise NotAsJson("--follow can't be combined with --output json", remedy="Leave out --follow or --output json")
    with suppress(KeyboardInterrupt):
        context.output.result(reports.FollowedLog(paths[0], follow(paths[0], lines, clock=context.clock)))
