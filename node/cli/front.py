"""`strandline front`: the process of a node's HTTP front. `strandline node` starts it."""

import os
import sys
from pathlib import Path

import click
import uvloop

from strandline.errors import ExitCode
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with
from strandline.node.front import NodeFront
from strandline.node.front_process.running import FrontRun, inherited_listener, settings_for
from strandline.node.front_process.supervisor_client import SupervisorClient
from strandline.node.job_watch.watch import opened_jobs
from strandline.node.logs import configure_logging
from strandline.node.offsets.deployment import open_deployment
from strandline.node.query.shard_link import ShardLink
from strandline.node.settings import Settings, load_with_origins
from strandline.node.shard.heap import limit_arenas
from strandline.node.supervisor.socket_folder import control_socket, socket_path
from strandline.node.workers import Workers


@click.command(
    cls=Command,
    help=help_with(
        "Run the HTTP front of a node. `strandline node` starts this command with a listening socket and restarts it "
        "when it ends. It is not useful on its own.",
        "strandline front --node-folder /run/strandline --listen-fd 5 --socket /run/strandline/front.sock",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE)),
)
@click.option(
    "--node-folder",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="The folder with the sockets of the node's supervisor and shards.",
)
@click.option("--listen-fd", type=click.IntRange(min=0), required=True, help="File descriptor of a listening socket.")
@click.option(
    "--socket",
    "report_socket",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="Unix socket at which the front reports that it is alive.",
)
@pass_context
def command(context: Context, *, node_folder: Path, listen_fd: int, report_socket: Path) -> ExitCode:
    """Run the front."""
    context.settings()
    limit_arenas()
    uvloop.run(_serve(context, node_folder, listen_fd, report_socket))
    return ExitCode.OK


async def _serve(context: Context, folder: Path, descriptor: int, report_socket: Path) -> None:
    environ, clock = context.environ, context.clock
    listener = inherited_listener(descriptor)
    settings = settings_for(listener, context.settings())
    workers = Workers(max(2, os.cpu_count() or 1))

    async def reloaded() -> None:
        await run.reload()

    supervisor = SupervisorClient(
        control_socket(folder),
        lambda shard: ShardLink(socket_path(folder, shard), shard, workers),
        clock,
        on_reload=reloaded,
    )
    front = NodeFront(
        supervisor,
        settings,
        lambda: open_deployment(settings, environ, clock),
        lambda: opened_jobs(settings, environ, clock),
        workers=workers,
        clock=clock,
        mask=context.mask,
        listener=listener,
    )

    def read() -> Settings:
        found = load_with_origins(context.config, environ).settings
        context.mask.add(found.secrets())
        return found

    def follow(given: Settings) -> None:
        configure_logging(given.log.level, given.log.format, sys.stderr, context.mask)

    run = FrontRun(front, supervisor, settings, report_socket, clock, read_settings=read, apply=follow)
    front.reload_node = run.reload_node
    await run.run()
