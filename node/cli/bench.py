"""`strandline bench`: figures of this machine."""

import tempfile
from pathlib import Path

import click

from strandline.jobs.importing.spec import Format
from strandline.node.bench.export_bench import ExportBench, ExportLoad
from strandline.node.bench.gateway_bench import GatewayBench, GatewayLoad
from strandline.node.bench.import_bench import BenchParts, ImportBench
from strandline.node.bench.import_files import FILE_FORMATS, ImportLoad
from strandline.node.bench.index_bench import IndexBench, IndexBenchReport
from strandline.node.bench.ingest_bench import IngestBench
from strandline.node.bench.peer import Peer
from strandline.node.bench.plot import Bar, bar_chart
from strandline.node.bench.promql_bench import PromqlBench, PromqlOptions
from strandline.node.bench.promql_load import LoadOptions
from strandline.node.bench.promql_report import picture as promql_picture
from strandline.node.bench.query_bench import QueryBench, QueryOptions
from strandline.node.bench.recovery_bench import RecoveryBench, RecoveryOptions
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.options import Group, help_with


@click.group(
    cls=Group,
    help=help_with(
        "Measure the real parts on this machine. Figures are of use only beside others of the same run or machine.",
        "strandline bench index --series 1000000",
    ),
)
def command() -> None:
    """The group."""


@command.command(
    help=help_with(
        "Measure the part-key index: adding keys, look-ups, cardinality, a bucket's cut, storing and loading, the "
        "local copy, the key table's growth, and memory. It works in a temporary folder and takes about a minute for "
        "a million series.",
        "strandline bench index --series 1000000",
        "strandline bench index --series 100000 --output json",
        "strandline bench index --series 1000000 --plot docs/bench-index.svg",
    )
)
@click.option("--series", type=click.IntRange(min=1000), default=1_000_000, show_default=True, help="How many series.")
@click.option("--heap", type=click.IntRange(min=64), default=512, show_default=True, help="MB of Java heap.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw the look-ups into this SVG file.")
@pass_context
def index(context: Context, *, series: int, heap: int, plot: Path | None) -> None:
    """Measure the index."""
    with (
        tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder,
        context.output.steps(f"Measuring the index with {series:,} series") as steps,
    ):
        report = IndexBench(series, Path(folder), steps, heap).run()
    if plot is not None:
        plot.write_text(picture(report), encoding="utf-8")
    context.output.result(report)


@command.command(
    help=help_with(
        "Measure a shard: a real process that reads from a real Kafka, keeps a real index and stores into a real "
        "Cassandra, all started for it in a temporary folder. The same bodies can be sent to a peer that takes "
        "remote-write requests, whose CPU time is then compared.",
        "strandline bench ingest --series 100000 --scrapes 60",
        "strandline bench ingest --scrapes 20 --peer http://localhost:8428/api/v1/write --peer-pid 4711",
    )
)
@click.option("--series", type=click.IntRange(min=1), default=100_000, show_default=True, help="How many series.")
@click.option(
    "--scrapes", type=click.IntRange(min=2), default=60, show_default=True, help="How many samples each series has."
)
@click.option("--peer", metavar="URL", help="Where a peer takes remote-write requests.")
@click.option("--peer-pid", type=click.IntRange(min=1), help="The process id of the peer.")
@pass_context
def ingest(context: Context, *, series: int, scrapes: int, peer: str | None, peer_pid: int | None) -> None:
    """Measure a shard."""
    if (peer is None) != (peer_pid is None):
        raise click.UsageError("--peer and --peer-pid go together")
    with (
        tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder,
        context.output.steps(f"Measuring a shard with {series:,} series and {scrapes} scrapes") as steps,
    ):
        other = Peer(peer, peer_pid) if peer is not None and peer_pid is not None else None
        report = IngestBench(series, scrapes, Path(folder), steps, other).run()
    context.output.result(report)


@command.command(
    help=help_with(
        "Measure how long a shard takes until it is ACTIVE again: with everything stored, with and without the local "
        "copy of its index; and after records were missed, which it reads itself or has read on Spark. Kafka and "
        "Cassandra are started for it in a temporary folder. It takes about a quarter of an hour, and some gigabytes "
        "of disk.",
        "strandline bench recovery",
        "strandline bench recovery --series 100000 --part index",
        "strandline bench recovery --series 1000000 --lag 10000 --plot docs/bench-recovery.svg",
    )
)
@click.option(
    "--series", type=click.IntRange(min=1), default=1_000_000, show_default=True, help="How many series at the most."
)
@click.option(
    "--lag",
    metavar="RECORDS",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="How many records are missed at the most.",
)
@click.option(
    "--part",
    type=click.Choice(["all", "index", "lag"]),
    default="all",
    show_default=True,
    help="Measure only starts with everything stored (index), or only those after records were missed (lag).",
)
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw the times into this SVG file.")
@pass_context
def recovery(context: Context, *, series: int, lag: int, part: str, plot: Path | None) -> None:
    """Measure starts."""
    options = RecoveryOptions(series, lag, index_part=part != "lag", lag_part=part != "index")
    with (
        tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder,
        context.output.steps(f"Measuring starts with up to {series:,} series and {lag:,} records missed") as steps,
    ):
        report = RecoveryBench(options, Path(folder), steps).run()
    if plot is not None:
        plot.write_text(report.picture(), encoding="utf-8")
    context.output.result(report)


@command.command(
    help=help_with(
        "Measure the gateway: a real process that takes remote writes over loopback HTTP and puts them into a real "
        "Kafka, which is started for it in a temporary folder. What counts is the CPU time of the gateway's process.",
        "strandline bench gateway",
        "strandline bench gateway --requests 2000 --series 500 --partitions 16",
    )
)
@click.option("--requests", type=click.IntRange(min=1), default=3000, show_default=True, help="How many requests.")
@click.option(
    "--series", type=click.IntRange(1, 100_000), default=2_000, show_default=True, help="How many series in each."
)
@click.option("--connections", type=click.IntRange(1, 100), default=4, show_default=True, help="How many clients.")
@click.option("--partitions", type=click.IntRange(1, 1000), default=4, show_default=True, help="How many partitions.")
@pass_context
def gateway(context: Context, *, requests: int, series: int, connections: int, partitions: int) -> None:
    """Measure the gateway."""
    load = GatewayLoad(requests, series, connections, partitions)
    with (
        tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder,
        context.output.steps(f"Measuring the gateway with {requests:,} requests of {series:,} series") as steps,
    ):
        report = GatewayBench(load, Path(folder), steps).run()
    context.output.result(report)


@command.command(
    help=help_with(
        "Measure look-ups of series and labels over HTTP: on a real node, with a real Kafka and Cassandra, and on "
        "VictoriaMetrics beside it, which is started, too, if it is installed. Both get the same bytes and are asked "
        "the same in turn. All of it lies in a temporary folder; a million series take some minutes and gigabytes.",
        "strandline bench query --series 1000000",
        "strandline bench query --series 100000 --shards 2 --output json",
        "strandline bench query --peer-url http://127.0.0.1:8428    # one that runs, and is empty",
    )
)
@click.option("--series", type=click.IntRange(min=1000), default=1_000_000, show_default=True, help="How many series.")
@click.option(
    "--shards", type=click.IntRange(1, 64), default=1, show_default=True, help="How many shards the node has."
)
@click.option(
    "--requests",
    type=click.IntRange(min=10),
    default=200,
    show_default=True,
    help="How many requests a look-up has at the least; quick ones have up to ten times as many.",
)
@click.option("--peer-url", metavar="URL", help="Where a peer is that has no data. [default: start VictoriaMetrics]")
@pass_context
def query(context: Context, *, series: int, shards: int, requests: int, peer_url: str | None) -> None:
    """Measure look-ups."""
    with (
        tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder,
        context.output.steps(f"Measuring look-ups with {series:,} series") as steps,
    ):
        report = QueryBench(QueryOptions(series, shards, requests, peer_url), Path(folder), steps).run()
    context.output.result(report)


@command.command(
    help=help_with(
        "Measure PromQL range queries over HTTP: on a real node with one shard, a real Kafka and Cassandra, and on "
        "VictoriaMetrics and Prometheus beside it, which are started, too, if they are installed. All get the same "
        "bytes and are asked the same in turn; their answers have to agree. What counts is CPU time: that of the node "
        "and of Cassandra, and that of each peer. With --clients, so many clients then ask the node at once while it "
        "ingests at half of the speed at which it read before; errors that name no limit make the run fail. All of it "
        "lies in a temporary folder; 100,000 series take about ten minutes and gigabytes for each hour.",
        "strandline bench promql --series 20000",
        "strandline bench promql --series 100000 --hours 24 --plot docs/bench-promql.svg",
        "strandline bench promql --series 20000 --no-peers --clients 10",
        "strandline bench promql --peer-url http://127.0.0.1:9090 --peer-pid 4711    # one that runs, and is empty",
    )
)
@click.option(
    "--series", type=click.IntRange(min=1000), default=100_000, show_default=True, help="How many series, about."
)
@click.option(
    "--hours", type=click.IntRange(1, 24), default=1, show_default=True, help="How long the longest range is."
)
@click.option(
    "--requests", type=click.IntRange(min=1), default=5, show_default=True, help="How often a query is asked at least."
)
@click.option("--peers/--no-peers", default=True, help="Whether to measure peers. [default: those that are installed]")
@click.option("--peer-url", "peer_urls", metavar="URL", multiple=True, help="Where a peer is that has no data.")
@click.option("--peer-pid", "peer_pids", type=int, multiple=True, help="The process of a peer, in the order of URLs.")
@click.option("--clients", type=click.IntRange(1, 200), help="How many ask while the shard ingests. [default: none]")
@click.option(
    "--load-seconds", type=click.IntRange(1, 3600), default=60, show_default=True, help="For how long those ask."
)
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw time and memory into this SVG.")
@pass_context
def promql(
    context: Context,
    *,
    series: int,
    hours: int,
    requests: int,
    peers: bool,
    peer_urls: tuple[str, ...],
    peer_pids: tuple[int, ...],
    clients: int | None,
    load_seconds: int,
    plot: Path | None,
) -> None:
    """Measure PromQL."""
    load = LoadOptions(clients, load_seconds) if clients is not None else None
    options = PromqlOptions(series, hours, requests, peers, peer_urls, peer_pids, load)
    with (
        tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder,
        context.output.steps(f"Measuring PromQL with {series:,} series over {hours} h") as steps,
    ):
        report = PromqlBench(options, Path(folder), steps).run()
    if plot is not None:
        plot.write_text(promql_picture(report), encoding="utf-8")
    context.output.result(report)
    if report.load is not None:
        report.load.check()


@command.command(
    "import",
    help=help_with(
        "Measure imports: files of each text format into committed records of a real Kafka, and on into real shards "
        "with a real Cassandra, all started for it in a temporary folder. The same files go to the import API of "
        "VictoriaMetrics, if it is installed. What counts is CPU time: that of the worker, which is this process, "
        "and that of the shards until all is stored. Ten million samples take some ten minutes and gigabytes.",
        "strandline bench import --samples 10000000",
        "strandline bench import --samples 10000000 --no-shards --no-peer    # up to committed records only",
        "strandline bench import --samples 400000 --series 400000 --format csv --partitions 1",
        "strandline bench import --format csv --no-shards --no-peer --on spark",
    ),
)
@click.option(
    "--samples", type=click.IntRange(min=1000), default=10_000_000, show_default=True, help="How many in each file."
)
@click.option("--series", type=click.IntRange(min=1), default=4_000, show_default=True, help="How many series.")
@click.option(
    "--format", "formats", type=click.Choice([one.value for one in FILE_FORMATS]), multiple=True, help="Only these."
)
@click.option(
    "--partitions", type=click.IntRange(1, 1000), default=1, show_default=True, help="How many partitions, and shards."
)
@click.option("--shards/--no-shards", default=True, help="Whether shards read what is imported. [default: they do]")
@click.option(
    "--peer/--no-peer", default=True, help="Whether to measure VictoriaMetrics. [default: if it is installed]"
)
@click.option("--peer-url", metavar="URL", help="Where a VictoriaMetrics runs. [default: start one]")
@click.option("--on", type=click.Choice(["process", "spark"]), default="process", help="Where parts run.")
@pass_context
def import_(
    context: Context,
    *,
    samples: int,
    series: int,
    formats: tuple[str, ...],
    partitions: int,
    shards: bool,
    peer: bool,
    peer_url: str | None,
    on: str,
) -> None:
    """Measure imports."""
    chosen = tuple(Format(one) for one in formats) or FILE_FORMATS
    load = ImportLoad(samples, min(series, samples), chosen, partitions)
    with (
        tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder,
        context.output.steps(f"Measuring imports of {samples:,} samples of {load.series:,} series") as steps,
    ):
        report = ImportBench(load, Path(folder), steps, BenchParts(shards, peer, peer_url, on == "spark")).run()
    context.output.result(report)


@command.command(
    help=help_with(
        "Measure exports: a day of stored samples from a real Cassandra, which is started for it in a temporary "
        "folder, into Parquet files. What counts is the CPU time of the worker's process, which is this one. "
        "VictoriaMetrics gets the same samples, if it is installed, and exports them, too. With --spark they are also "
        "read by the Spark data source, in a local session; then the CPU time of all of Spark's processes counts.",
        "strandline bench export --samples 10000000",
        "strandline bench export --samples 10000000 --spark",
        "strandline bench export --samples 1000000 --labels 10 --peer-url http://127.0.0.1:8428",
    ),
)
@click.option("--samples", type=click.IntRange(min=1000), default=10_000_000, show_default=True, help="How many.")
@click.option("--series", type=click.IntRange(min=4), default=4_000, show_default=True, help="How many series.")
@click.option("--labels", type=click.IntRange(2, 30), default=3, show_default=True, help="How many labels each has.")
@click.option("--peer-url", metavar="URL", help="Where a peer is that has no data. [default: start VictoriaMetrics]")
@click.option("--spark", is_flag=True, help="Measure a read by the Spark data source, too.")
@pass_context
def export(context: Context, *, samples: int, series: int, labels: int, peer_url: str | None, spark: bool) -> None:
    """Measure exports."""
    load = ExportLoad(samples, min(series, samples // 24), labels)
    with (
        tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder,
        context.output.steps(f"Measuring exports of {samples:,} samples of {load.series:,} series") as steps,
    ):
        report = ExportBench(load, Path(folder), steps, peer_url, on_spark=spark).run()
    context.output.result(report)


def picture(report: IndexBenchReport) -> str:
    """The look-ups and the stages of a run."""
    stages = [Bar(stage.what, stage.seconds * 1000, f"{stage.keys_per_second:,.0f} keys/s") for stage in report.stages]
    lookups = [Bar(one.what, one.p50_ms, f"{one.found:,} found") for one in report.lookups]
    title = f"The part-key index at {report.series:,} series with {report.labels_a_series} labels"
    return bar_chart(
        title, f"look-ups: p50 of {report.lookups[0].runs} runs or fewer · {report.machine}", [*lookups, *stages]
    )
