"""Runs a soak test; see the package. Exits with 1 if a sample was lost or duplicated, or a count is wrong."""

import secrets
import sys
import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from soak_jobs.soak import Soak, SoakOptions, SoakReport
from strandline.errors import StrandlineError
from strandline.node.stack import Stack, StackOptions

_SAMPLES = {"import": 2_000_000, "send": 24_000}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--kind", type=click.Choice(["import", "send"]), default="import", show_default=True, help="The kind of the job."
)
@click.option("--kills", default=30, show_default=True, help="The number of processes to kill.")
@click.option("--samples", type=int, help=f"The number of rows to import, or of series to send.  [default: {_SAMPLES}]")
@click.option("--seed", type=int, help="Determines which processes are killed, and when.  [default: random]")
@click.option("--spark/--no-spark", default=None, help="Run one of the workers on Spark.  [default: for imports]")
@click.option("--each-once", is_flag=True, help="Kill one process of each kind instead, like the system test.")
@click.option("--limit", default=1_800.0, show_default=True, help="The timeout of the soak test in seconds.")
def main(
    *,
    kind: str,
    kills: int,
    samples: int | None,
    seed: int | None,
    spark: bool | None,
    each_once: bool,
    limit: float,
) -> None:
    """Import a file, or send series, on a real stack while its processes are killed at random."""
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    samples = _SAMPLES[kind] if samples is None else samples
    on_spark = kind == "import" if spark is None else spark
    options = SoakOptions(seed, kills, samples, limit, spark=on_spark, kind=kind, is_each_once=each_once)
    console = Console(highlight=False)
    console.print(
        f"seed {seed}: {'one kill of each kind' if each_once else f'{kills} kills'} in {kind} of {samples:,} rows"
    )
    with tempfile.TemporaryDirectory(prefix="strandline-soak-") as folder:
        console.print("starting Kafka and Cassandra")
        try:
            with Stack.start(StackOptions(state_dir=Path(folder) / "stack")) as stack:
                report = Soak(stack, Path(folder), options, console.print).run()
        except StrandlineError as error:
            console.print(f"seed {seed} failed: {error}")
            sys.exit(1)
    console.print(table(report))
    console.print(f"seed {seed} {'passed' if report.passed else 'FAILED'} after {report.seconds:,.0f} s")
    sys.exit(0 if report.passed else 1)


def table(report: SoakReport) -> Table:
    shown = Table("what", "count")
    for name, count in sorted(report.kills.items()):
        shown.add_row(f"{name} killed", f"{count}")
    count = report.count
    rows = {
        f"{report.unit} expected": f"{count.expected:,}",
        f"{report.unit} in the topic": f"{count.in_topic:,}",
        "parts, chunks": f"{report.parts:,}, {count.chunks:,}",
        "lost": f"{count.lost:,}",
        "duplicates": f"{count.duplicates:,}",
        "wrong": f"{count.wrong:,}",
        "state of the job": report.state,
        "counts of the job": "right" if count.counts_are_right else "WRONG",
        "samples through the gateway, acknowledged": f"{report.load_acknowledged:,}",
        "of these lost": f"{report.load_lost:,}",
    }
    for name, value in rows.items():
        shown.add_row(name, value)
    return shown


if __name__ == "__main__":
    main()
