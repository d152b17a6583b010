"""`strandline-sim`: runs many seeds of the simulation on all cores, and shows the smallest failing history."""

import multiprocessing
import os
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from support.seeded.running import SHARDS
from support.seeded.suites import Suite
from support.seeded_jobs.running import JOBS

SUITES: dict[str, Suite[Any]] = {"shards": SHARDS, "jobs": JOBS}

# The number of seeds that one process runs before it reports.
_BATCH = 50
_REPORT_S = 30.0


def run_batch(name: str, first: int, count: int) -> tuple[int, list[int]]:
    """Run seeds in this process. Returns their number, and the seeds that failed."""
    suite = SUITES[name]
    with suite.simulations() as folder:
        return count, [seed for seed, failure in suite.failures(first, count, folder) if failure is not None]


def show(suite: Suite[Any], seed: int) -> bool:
    """Run one seed. If it fails, show the smallest history that fails in the same way. Returns whether it fails."""
    with suite.simulations() as folder:
        failure = suite.failure_of(suite.history_of(seed), folder, None)
        if failure is None:
            click.echo(f"seed {seed} passes")
            return False
        click.echo(str(suite.smallest(failure, folder)))
        return True


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seeds", default=1000, show_default=True, help="How many histories to run.")
@click.option("--from", "first", default=0, show_default=True, help="The first seed.")
@click.option(
    "--suite", type=click.Choice(list(SUITES)), default="shards", show_default=True, help="Histories of what."
)
@click.option("--jobs", default=os.cpu_count() or 1, show_default="one per core", help="How many processes.")
@click.option("--replay", type=int, help="Run only this seed, and show the smallest history that fails like it.")
def main(seeds: int, first: int, suite: str, jobs: int, replay: int | None) -> None:
    """Run seeded histories: of shards, replays, gateway and clocks, or of bulk jobs. Exits with 1 if a seed fails."""
    if replay is not None:
        sys.exit(1 if show(SUITES[suite], replay) else 0)
    began, failed = time.monotonic(), list[int]()
    ranges = [(one, min(_BATCH, first + seeds - one)) for one in range(first, first + seeds, _BATCH)]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with (
        ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool,
        Progress(*columns, console=console, disable=not console.is_terminal) as progress,
    ):
        task, done, reported = progress.add_task("histories", total=seeds), 0, began
        running: list[Future[tuple[int, list[int]]]] = [pool.submit(run_batch, suite, *one) for one in ranges]
        for future in as_completed(running):
            count, bad = future.result()
            done, failed = done + count, sorted([*failed, *bad])
            for seed in bad:
                progress.console.print(f"seed {seed} failed", highlight=False)
            progress.update(task, completed=done, description=f"histories ({len(failed)} failed)")
            if not console.is_terminal and time.monotonic() - reported > _REPORT_S:
                reported = time.monotonic()
                click.echo(f"{done:,} of {seeds:,} histories, {len(failed)} failed", err=True)
    took = time.monotonic() - began
    click.echo(f"{seeds:,} histories from seed {first} in {took:,.0f} s, {len(failed)} failed")
    if failed:
        click.echo(f"failed seeds: {' '.join(map(str, failed[:50]))}")
        show(SUITES[suite], failed[0])
        sys.exit(1)
