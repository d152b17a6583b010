"""`strandline node`: the service that runs the shards of this machine, and answers for all of them."""

import asyncio
import sys

import click

from strandline.errors import ExitCode
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with
from strandline.node.front import NodeFront
from strandline.node.logs import configure_logging
from strandline.node.offsets.deployment import opened
from strandline.node.query.link_client import LinkClient
from strandline.node.settings import Settings, load_with_origins
from strandline.node.supervisor.assembling import assembled_supervisor
from strandline.node.supervisor.service import NodeService
from strandline.node.supervisor.supervisor import Supervisor
from strandline.node.systemd.notices import NodeNotices


@click.command(
    cls=Command,
    help=help_with(
        "Run the node: one process for each shard that the settings list, started again when it ends, and one HTTP "
        "front for all. SIGTERM or Ctrl-C ends it within seconds, a second one at once; nothing is lost by either. "
        "SIGHUP reads the settings again, and starts shards that are down.",
        "strandline node",
        "strandline node --config /etc/strandline/metrics.toml",
        'STRANDLINE_NODE__SHARDS="0-3" strandline node',
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE)),
)
@pass_context
def command(context: Context) -> ExitCode:
    """Run the node."""
    context.settings()
    with assembled_supervisor(
        context.loaded,
        context.environ,
        context.clock,
        lambda shard, path: LinkClient(path, shard, context.clock),
        on_terminal=sys.stderr.isatty(),
    ) as supervisor:
        settings, environ, clock = context.settings(), context.environ, context.clock
        front = NodeFront(
            supervisor, settings, lambda: opened(settings, environ, clock), clock=clock, mask=context.mask
        )
        asyncio.run(_serve(context, supervisor, front))
    return ExitCode.OK


async def _serve(context: Context, supervisor: Supervisor[LinkClient], front: NodeFront) -> None:
    notices = NodeNotices.of(supervisor, context.environ, context.clock, on_feed=front.figures.watchdog_fed)

    def read() -> Settings:
        settings = load_with_origins(context.config, context.environ).settings
        context.mask.add(settings.secrets())
        return settings

    def follow(settings: Settings) -> None:
        configure_logging(settings.log.level, settings.log.format, sys.stderr, context.mask)

    service = NodeService(supervisor, front, notices, read_settings=read, apply=follow)
    front.reload_node = service.reload
    await service.run()
