"""`strandline gateway`: remote writes into Kafka, in the foreground."""

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
        "Take remote writes of Prometheus, vmagent and others at /api/v1/write and put them into the dataset's topic, "
        "each series into its partition. A request is answered with success once Kafka has all of it. On SIGTERM or "
        "Ctrl-C it takes no more, finishes what it has begun, and ends; a second signal ends it at once. On SIGHUP it "
        "reads its tokens and its certificate anew.",
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
    help="Make the topic with so many partitions if it is not there. One that is there stays as it is.",
)
@click.option(
    "--status-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write what the gateway is doing into this file, as JSON, twice a second.",
)
@pass_context
def command(context: Context, *, create_topic: int | None, status_file: Path | None) -> ExitCode:
    """Run the gateway."""
    settings = context.settings()
    configure_malloc()
    if create_topic is not None:
        make_topic(settings, create_topic)

    def reload() -> Settings:
        again = load_with_origins(context.config, context.environ).settings
        context.mask.add(again.secrets())
        return again

    def tell(bound: BoundAddress) -> None:
        click.echo(f"Taking remote writes at {bound.url}/api/v1/write")

    with open_gateway(settings, context.clock) as parts:
        service = Service(
            settings,
            context.mask,
            extra_routes=metrics_routes(lambda: gateway_families(parts.gateway.figures(), ProcessFigures.now())),
            on_listening=tell,
            reload=reload,
            environ=context.environ,
            status_file=status_file,
        )
        uvloop.run(serve(parts.gateway, service))
    return ExitCode.OK
