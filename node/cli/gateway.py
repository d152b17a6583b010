"""`strandline gateway`: writes remote-write requests to Kafka, in the foreground."""

from pathlib import Path

import click
import uvloop

from strandline.errors import ExitCode
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with
from strandline.node.gateway.assembling import make_topic, open_gateway
from strandline.node.gateway.heap import configure_malloc
from strandline.node.gateway.serving import Service, serve
from strandline.node.http.listening import BoundAddress
from strandline.node.metrics.gateway_families import gateway_families
from strandline.node.metrics.routes import metrics_routes
from strandline.node.settings import Settings, load_with_origins
from strandline.node.shard.report import ProcessFigures


@click.command(
    cls=Command,
    help=help_with(
        "Accept remote writes of Prometheus, vmagent and others at /api/v1/write, and write them to the dataset's "
        "topic, each series to its partition. A request succeeds once Kafka has acknowledged all of its records. "
        "SIGTERM or Ctrl-C: accept no more requests, finish those in flight, and exit; a second signal exits "
        "immediately. SIGHUP: reload tokens and certificate.",
        "strandline gateway",
        "strandline gateway --create-topic 8",
        "strandline gateway --config /etc/strandline/strandline.toml --status-file /run/strandline/gateway.json",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE)),
)
@click.option(
    "--create-topic",
    metavar="PARTITIONS",
    type=click.IntRange(min=1, max=10_000),
    help="Create the topic with this number of partitions. An existing topic is not changed.",
)
@click.option(
    "--status-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the gateway's state to this file, as JSON, twice a second.",
)
@pass_context
def command(context: Context, *, create_topic: int | None, status_file: Path | None) -> ExitCode:
    """Run the gateway."""
    settings = context.settings()
    configure_malloc()
    if create_topic is not None:
        make_topic(settings, create_topic)

    def reload() -> Settings:
        reloaded = load_with_origins(context.config, context.environ).settings
        context.mask.add(reloaded.secrets())
        return reloaded

    def print_address(bound: BoundAddress) -> None:
        click.echo(f"Taking remote writes at {bound.url}/api/v1/write")

    with open_gateway(settings, context.clock) as parts:
        service = Service(
            settings,
            context.mask,
            extra_routes=metrics_routes(lambda: gateway_families(parts.gateway.figures(), ProcessFigures.now())),
            on_listening=print_address,
            reload=reload,
            environ=context.environ,
            status_file=status_file,
        )
        uvloop.run(serve(parts.gateway, service))
    return ExitCode.OK
