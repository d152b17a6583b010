"""`strandline bench`: benchmarks."""

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
        "Run a benchmark on this machine. Compare results only with others of the same run or machine.",
        "strandline bench index --series 1000000",
    ),
)
def command() -> None:
    """The group."""


@command.command(
    help=help_with(
        "Measure the part-key index: adding keys, lookups, cardinality, cutting a bucket, storing and loading, the "
        "local copy, growth of the key table, and memory. Uses a temporary folder. A million series take about a "
        "minute.",
        "strandline bench index --series 1000000",
        "strandline bench index --series 100000 --output json",
        "strandline bench index --series 1000000 --plot docs/bench-index.svg",
    )
)
@click.option("--series", type=click.IntRange(min=1000), default=1_000_000, show_default=True, help="Number of series.")
@click.option("--heap", type=click.IntRange(min=64), default=512, show_default=True, help="Java heap in MB.")
@click.option(
    "--plot", type=click.Path(dir_okay=False, path_type=Path), help="Write a chart of the lookups to this SVG file."
)
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
        "Measure a shard's process, with a Kafka and a Cassandra that are started in a temporary folder. With --peer, "
        "the same request bodies are also sent to another remote-write receiver, and the CPU times are compared.",
        "strandline bench ingest --series 100000 --scrapes 60",
        "strandline bench ingest --scrapes 20 --peer http://localhost:8428/api/v1/write --peer-pid 4711",
    )
)
@click.option("--series", type=click.IntRange(min=1), default=100_000, show_default=True, help="Number of series.")
@click.option(
    "--scrapes", type=click.IntRange(min=2), default=60, show_default=True, help="Number of samples per series."
)
@click.option("--peer", metavar="URL", help="Remote-write URL of a peer.")
@click.option("--peer-pid", type=click.IntRange(min=1), help="Process id of the peer.")
@pass_context
def ingest(context: Context, *, series: int, scrapes: int, peer: str | None, peer_pid: int | None) -> None:
    """Measure a shard."""
    if (peer is None) != (peer_pid is None):
        raise click.UsageError("--peer and --peer-pid must be given together")
    with (
        tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder,
        context.output.steps(f"Measuring a shard with {series:,} series and {scrapes} scrapes") as steps,
    ):
        other = Peer(peer, peer_pid) if peer is not None and peer_pid is not None else None
        report = IngestBench(series, scrapes, Path(folder), steps, other).run()
    context.output.result(report)


@command.command(
    help=help_with(
        "Measure how long a shard takes to become active: with everything stored, with and without the local copy of "
        "its index; and after a lag, replayed by the shard itself or on Spark. Kafka and Cassandra are started in a "
        "temporary folder. Takes about 15 minutes and several gigabytes of disk space.",
        "strandline bench recovery",
        "strandline bench recovery --series 100000 --part index",
        "strandline bench recovery --series 1000000 --lag 10000 --plot docs/bench-recovery.svg",
    )
)
@click.option(
    "--series", type=click.IntRange(min=1), default=1_000_000, show_default=True, help="Maximum number of series."
)
@click.option(
    "--lag",
    metavar="RECORDS",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="Maximum lag in records.",
)
@click.option(
    "--part",
    type=click.Choice(["all", "index", "lag"]),
    default="all",
    show_default=True,
    help="Measure only starts with everything stored (index), or only starts after a lag (lag).",
)
@click.option(
    "--plot", type=click.Path(dir_okay=False, path_type=Path), help="Write a chart of the times to this SVG file."
)
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
        "Measure the gateway's process with remote writes over loopback HTTP, and a Kafka that is started in a "
        "temporary folder. The result is the CPU time of the gateway's process.",
        "strandline bench gateway",
        "strandline bench gateway --requests 2000 --series 500 --partitions 16",
    )
)
@click.option("--requests", type=click.IntRange(min=1), default=3000, show_default=True, help="Number of requests.")
@click.option(
    "--series", type=click.IntRange(1, 100_000), default=2_000, show_default=True, help="Number of series per request."
)
@click.option("--connections", type=click.IntRange(1, 100), default=4, show_default=True, help="Number of clients.")
@click.option("--partitions", type=click.IntRange(1, 1000), default=4, show_default=True, help="Number of partitions.")
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
        "Measure queries for series and labels over HTTP: on a node with Kafka and Cassandra, and on VictoriaMetrics, "
        "which is started if it is installed. Both get the same data and the same queries, in turn. Uses a temporary "
        "folder; a million series take several minutes and gigabytes.",
        "strandline bench query --series 1000000",
        "strandline bench query --series 100000 --shards 2 --output json",
        "strandline bench query --peer-url http://127.0.0.1:8428    # a running, empty one",
    )
)
@click.option("--series", type=click.IntRange(min=1000), default=1_000_000, show_default=True, help="Number of series.")
@click.option("--shards", type=click.IntRange(1, 64), default=1, show_default=True, help="Number of shards.")
@click.option(
    "--requests",
    type=click.IntRange(min=10),
    default=200,
    show_default=True,
    help="Minimum number of requests per query; fast queries get up to ten times as many.",
)
@click.option("--peer-url", metavar="URL", help="URL of an empty peer. [default: start VictoriaMetrics]")
@pass_context
def query(context: Context, *, series: int, shards: int, requests: int, peer_url: str | None) -> None:
    """Measure metadata queries."""
    with (
        tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder,
        context.output.steps(f"Measuring lookups with {series:,} series") as steps,
    ):
        report = QueryBench(QueryOptions(series, shards, requests, peer_url), Path(folder), steps).run()
    context.output.result(report)


@command.command(
    help=help_with(
        "Measure PromQL range queries over HTTP: on a node with one shard, Kafka and Cassandra, and on "
        "VictoriaMetrics and Prometheus, which are started if they are installed. All get the same data and the same "
        "queries, in turn, and their answers must agree. The results are CPU times: of the node and Cassandra, and of "
        "each peer. With --clients, this number of clients then queries the node concurrently while it ingests at half "
        "of the rate measured before; the run fails on errors other than limits. Uses a temporary folder; 100,000 "
        "series take about ten minutes and gigabytes per hour of data.",
        "strandline bench promql --series 20000",
        "strandline bench promql --series 100000 --hours 24 --plot docs/bench-promql.svg",
        "strandline bench promql --series 20000 --no-peers --clients 10",
        "strandline bench promql --peer-url http://127.0.0.1:9090 --peer-pid 4711    # a running, empty one",
    )
)
@click.option(
    "--series", type=click.IntRange(min=1000), default=100_000, show_default=True, help="Approximate number of series."
)
@click.option(
    "--hours", type=click.IntRange(1, 24), default=1, show_default=True, help="Length of the longest range, in hours."
)
@click.option(
    "--requests", type=click.IntRange(min=1), default=5, show_default=True, help="Minimum number of runs per query."
)
@click.option("--peers/--no-peers", default=True, help="Also measure peers. [default: those that are installed]")
@click.option("--peer-url", "peer_urls", metavar="URL", multiple=True, help="URL of an empty peer.")
@click.option(
    "--peer-pid", "peer_pids", type=int, multiple=True, help="Process id of a peer, in the order of --peer-url."
)
@click.option(
    "--clients",
    type=click.IntRange(1, 200),
    help="Number of clients that query while the shard ingests. [default: none]",
)
@click.option(
    "--load-seconds",
    type=click.IntRange(1, 3600),
    default=60,
    show_default=True,
    help="How long these clients run, in seconds.",
)
@click.option(
    "--plot", type=click.Path(dir_okay=False, path_type=Path), help="Write a chart of time and memory to this SVG file."
)
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
        "Measure imports: from files of each text format to committed records in Kafka, and on to shards with "
        "Cassandra, all started in a temporary folder. The same files are imported into VictoriaMetrics, if it is "
        "installed. The results are CPU times: of the worker, which is this process, and of the shards until all "
        "samples are stored. Ten million samples take about ten minutes and several gigabytes.",
        "strandline bench import --samples 10000000",
        "strandline bench import --samples 10000000 --no-shards --no-peer    # only up to committed records",
        "strandline bench import --samples 400000 --series 400000 --format csv --partitions 1",
        "strandline bench import --format csv --no-shards --no-peer --on spark",
    ),
)
@click.option(
    "--samples",
    type=click.IntRange(min=1000),
    default=10_000_000,
    show_default=True,
    help="Number of samples per file.",
)
@click.option("--series", type=click.IntRange(min=1), default=4_000, show_default=True, help="Number of series.")
@click.option(
    "--format",
    "formats",
    type=click.Choice([one.value for one in FILE_FORMATS]),
    multiple=True,
    help="Only these formats.",
)
@click.option(
    "--partitions", type=click.IntRange(1, 1000), default=1, show_default=True, help="Number of partitions and shards."
)
@click.option(
    "--shards/--no-shards", default=True, help="Also measure shards that read the imported records. [default: yes]"
)
@click.option("--peer/--no-peer", default=True, help="Also measure VictoriaMetrics. [default: if it is installed]")
@click.option("--peer-url", metavar="URL", help="URL of a running VictoriaMetrics. [default: start one]")
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
        "Measure exports: a day of samples from a Cassandra that is started in a temporary folder, to Parquet files. "
        "The result is the CPU time of the worker, which is this process. VictoriaMetrics exports the same samples, "
        "if it is installed. With --spark, the Spark data source also reads them in a local session; the result is "
        "then the CPU time of all of Spark's processes.",
        "strandline bench export --samples 10000000",
        "strandline bench export --samples 10000000 --spark",
        "strandline bench export --samples 1000000 --labels 10 --peer-url http://127.0.0.1:8428",
    ),
)
@click.option(
    "--samples", type=click.IntRange(min=1000), default=10_000_000, show_default=True, help="Number of samples."
)
@click.option("--series", type=click.IntRange(min=4), default=4_000, show_default=True, help="Number of series.")
@click.option("--labels", type=click.IntRange(2, 30), default=3, show_default=True, help="Number of labels per series.")
@click.option("--peer-url", metavar="URL", help="URL of an empty peer. [default: start VictoriaMetrics]")
@click.option("--spark", is_flag=True, help="Also measure the Spark data source.")
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
    """The chart of the lookups and stages of a run."""
    stages = [Bar(stage.what, stage.seconds * 1000, f"{stage.keys_per_second:,.0f} keys/s") for stage in report.stages]
    lookups = [Bar(one.what, one.p50_ms, f"{one.found:,} found") for one in report.lookups]
    title = f"The part-key index at {report.series:,} series with {report.labels_a_series} labels"
    return bar_chart(
        title, f"lookups: p50 of {report.lookups[0].runs} runs or fewer · {report.machine}", [*lookups, *stages]
    )
