"""`strandline node`: the supervisor of the shards' processes and the HTTP front on this machine.

This process must stay small: it must not import what only the shards or the front need.
"""

import asyncio
import socket
import sys
from contextlib import closing
from pathlib import Path

import click

from strandline.errors import ExitCode
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with, take_option
from strandline.node.http.listening import bound_socket, tls_context
from strandline.node.logs import configure_logging
from strandline.node.settings import Settings, load_with_origins
from strandline.node.supervisor.assembling import assembled_supervisor
from strandline.node.supervisor.service import NodeService
from strandline.node.supervisor.socket_folder import awaited_socket_folder, control_socket
from strandline.node.supervisor.supervisor import Supervisor
from strandline.node.supervisor.systemd_notices import NodeNotices


@click.command(
    cls=Command,
    help=help_with(
        "Run the node: one process per shard in node.shards and one for the HTTP front. Processes that end are "
        "restarted. SIGTERM or Ctrl-C stops the node within seconds, a second one immediately; nothing is lost. SIGHUP "
        "reloads the settings and starts processes that are down.",
        "strandline node",
        "strandline node --config /etc/strandline/metrics.toml",
        'STRANDLINE_NODE__SHARDS="0-3" strandline node',
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE)),
)
@take_option
@pass_context
def command(context: Context, *, take: bool) -> ExitCode:
    """Run the node."""
    settings = context.settings()
    # Reports an unusable certificate now, rather than in each front that is started.
    tls_context(settings.http)
    with (
        # Before the listener: connections would wait in its backlog while the disk is full.
        awaited_socket_folder(context.environ, context.clock) as folder,
        closing(bound_socket(settings.http.node_address)) as listener,
        assembled_supervisor(
            context.loaded,
            context.environ,
            context.clock,
            folder,
            listener=listener.fileno(),
            on_terminal=sys.stderr.isatty(),
            take=take,
        ) as supervisor,
    ):
        asyncio.run(_serve(context, supervisor, folder, listener))
    return ExitCode.OK


async def _serve(context: Context, supervisor: Supervisor, folder: Path, listener: socket.socket) -> None:
    def read() -> Settings:
        settings = load_with_origins(context.config, context.environ).settings
        context.mask.add(settings.secrets())
        # Before anything is applied: invalid settings change nothing.
        tls_context(settings.http)
        return settings

    def follow(settings: Settings) -> None:
        configure_logging(settings.log.level, settings.log.format, sys.stderr, context.mask)

    service = NodeService(
        supervisor,
        NodeNotices.of(supervisor, context.environ, context.clock),
        control_socket(folder),
        context.clock,
        read_settings=read,
        apply=follow,
        # The front closes its copy. Once both are closed, connections are refused instead of waiting in the backlog.
        on_stop=listener.close,
    )
    await service.run()
