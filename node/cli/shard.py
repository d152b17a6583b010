"""`strandline shard`: runs one shard in the foreground."""

import signal
from contextlib import ExitStack, closing
from pathlib import Path

import click

from strandline.errors import ExitCode
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with, take_option
from strandline.node.query.link_server import LinkServer
from strandline.node.query.shard_service import ShardService
from strandline.node.replay.service import NodeWorker, WorkerProcess, worker_folder
from strandline.node.shard.assembling import assembled
from strandline.node.shard.heap import limit_arenas
from strandline.node.shard.running import RunningShard
from strandline.node.shard.status_file import StatusFile
from strandline.recovery.offset_policy import Accepted


@click.command(
    cls=Command,
    help=help_with(
        "Run one shard: read its partition, maintain its index, and store closed buckets. SIGTERM or Ctrl-C stops it "
        "within seconds. Nothing is lost, even if it is killed.",
        "strandline shard 0",
        "strandline shard 3 --config /etc/strandline/strandline.toml --status-file /run/strandline/shard-3.json",
        "strandline shard 0 --accept-loss 120034",
        "strandline shard 1 --socket /run/strandline/shard-1.socket",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE, ExitCode.DATA_LOST, ExitCode.FENCED)),
)
@click.argument("shard", type=click.IntRange(min=0))
@click.option(
    "--status-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the shard's state to this file, as JSON, twice a second.",
)
@click.option(
    "--socket",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Unix socket at which the shard answers the requests of a node's front.",
)
@click.option(
    "--shared-worker",
    is_flag=True,
    help="Don't start a replay worker: the node that runs this shard runs one for all of its shards.",
)
@click.option(
    "--accept-loss",
    metavar="OFFSET",
    type=click.IntRange(min=0),
    help="Continue although Kafka has deleted unstored records below this offset. The loss is recorded.",
)
@click.option(
    "--accept-new-topic",
    is_flag=True,
    help="Continue although the topic was deleted and recreated, or truncated. It is read from its beginning.",
)
@click.option(
    "--accept-index-loss",
    is_flag=True,
    help="Continue although index buckets are damaged that can't be rebuilt from Kafka. Keys only in them are lost.",
)
@take_option
@pass_context
def command(
    context: Context,
    *,
    shard: int,
    status_file: Path | None,
    socket: Path | None,
    shared_worker: bool,
    accept_loss: int | None,
    accept_new_topic: bool,
    accept_index_loss: bool,
    take: bool,
) -> ExitCode:
    """Run a shard."""
    settings = context.settings()
    limit_arenas()
    accepted = Accepted(accept_loss, another_topic=accept_new_topic, index_loss=accept_index_loss)
    result_cache = settings.query.result_cache.bytes
    with ExitStack() as opened:
        service = opened.enter_context(closing(ShardService(shard, context.clock, socket, result_cache=result_cache)))
        if socket is not None:
            opened.enter_context(LinkServer(socket, service, context.clock))
        folder = worker_folder(settings, context.environ)
        worker = NodeWorker() if shared_worker else WorkerProcess(context.loaded.file, folder, context.clock)
        replays = opened.enter_context(closing(worker))
        parts = opened.enter_context(assembled(settings, shard, context.environ, context.clock, replays=replays))
        running = RunningShard(parts, accepted=accepted, take=take)
        service.begin(running)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: running.stop())
        if status_file is not None:
            opened.enter_context(StatusFile(status_file, context.clock).updating(running))
        running.run()
    return ExitCode.OK
