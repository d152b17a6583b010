"""Runs a soak; see the package. Exits with 1 if a sample was lost or doubled, or a count is wrong."""

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


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--kills", default=30, show_default=True, help="How many processes are killed.")
@click.option("--samples", default=2_000_000, show_default=True, help="How many rows the imported file has.")
@click.option("--seed", type=int, help="Which processes are killed, and when.  [default: a random one]")
@click.option("--spark/--no-spark", default=True, help="Whether one of the workers runs on Spark. [default: it does]")
@click.option("--limit", default=1_800.0, show_default=True, help="After so many seconds the soak has failed.")
def main(kills: int, samples: int, seed: int | None, spark: bool, limit: float) -> None:
    """Import a file on a real stack while its processes are killed at random."""
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    console = Console(highlight=False)
    console.print(f"seed {seed}: {kills} kills during an import of {samples:,} rows")
    with tempfile.TemporaryDirectory(prefix="strandline-soak-") as folder:
        console.print("starting Kafka and Cassandra")
        try:
            with Stack.start(StackOptions(state_dir=Path(folder) / "stack")) as stack:
                report = Soak(
                    stack, Path(folder), SoakOptions(seed, kills, samples, limit, spark=spark), console.print
                ).run()
        except StrandlineError as error:
            console.print(f"seed {seed} failed: {error}")
            sys.exit(1)
    console.print(table(report))
    console.print(f"seed {seed} {'passed' if report.is_good else 'FAILED'} after {report.seconds:,.0f} s")
    sys.exit(0 if report.is_good else 1)


def table(report: SoakReport) -> Table:
    shown = Table("what", "count")
    for name, count in sorted(report.kills.items()):
        shown.add_row(f"{name} killed", f"{count}")
    rows = {
        "samples in the file": f"{report.samples:,}",
        "samples in the topic": f"{report.in_topic:,}",
        "parts, chunks": f"{report.parts:,}, {report.chunks:,}",
        "lost": f"{report.lost:,}",
        "doubled": f"{report.doubled:,}",
        "with a wrong time": f"{report.wrong_times:,}",
        "state of the job": report.state,
        "counts of its report": "right" if report.counts_are_right else "WRONG",
        "samples through the gateway, acknowledged": f"{report.load_acknowledged:,}",
        "of these lost": f"{report.load_lost:,}",
    }
    for name, value in rows.items():
        shown.add_row(name, value)
    return shown


if __name__ == "__main__":
    main()
