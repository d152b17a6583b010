"""`strandline recover work`: runs a worker for replay jobs on Spark."""

import signal
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click

from strandline.errors import ExitCode
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with
from strandline.node.output import Block
from strandline.node.query.link_server import LinkServer
from strandline.node.replay.spark_worker import work, worker_context
from strandline.node.shard.folder_lock import FolderInUse
from strandline.node.supervisor.liveness import Stage
from strandline.node.supervisor.process_reports import ProcessReports
from strandline.recovery.replay_worker import WaveProgress


@dataclass(frozen=True, slots=True)
class WorkReport:
    """What a worker did: nothing if another worker of this node was running."""

    jobs: int
    records: int
    another_works: bool = False

    def blocks(self) -> list[Block]:
        """One line."""
        if self.another_works:
            return ["Another worker of this node is already running."]
        if not self.jobs:
            return ["No jobs to do."]
        return [f"{self.jobs:,} jobs done, {self.records:,} offsets."]


class _Tally:
    """Counts the jobs of finished waves."""

    def __init__(self) -> None:
        self.done: set[tuple[object, ...]] = set()
        self.records = 0

    def on_progress(self, progress: WaveProgress) -> None:
        if progress.fraction < 1.0:
            return
        for job in progress.jobs:
            key = (job.shard, job.bucket, job.epoch)
            if key not in self.done:
                self.done.add(key)
                self.records += job.end - job.start


@click.command(
    cls=Command,
    help=help_with(
        "Run replay jobs of the dataset on Spark until none are left. A node starts a worker itself when its shards "
        "have a large lag. To finish sooner, run more workers on other hosts; each node has at most one.",
        "strandline recover work",
        "strandline recover work --config /etc/strandline/strandline.toml",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE)),
)
@click.option(
    "--socket",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Unix socket at which the worker reports to its node that it is alive.",
)
@pass_context
def command(context: Context, *, socket: Path | None) -> ExitCode:
    """Run the worker."""
    settings = context.settings()
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    tally = _Tally()
    # STARTING has a longer timeout: the loop stands still while Spark starts and during some calls of a wave.
    reports = ProcessReports(Stage.STARTING)

    def is_stopping() -> bool:
        """Called in each iteration of the worker's loop, and of the loop that waits for Spark."""
        reports.iterated()
        return stopping.is_set()

    try:
        with ExitStack() as opened:
            if socket is not None:
                opened.enter_context(LinkServer(socket, reports, context.clock))
            place = opened.enter_context(worker_context(settings, context.environ, context.clock))
            # A Spark session takes seconds to start and a gigabyte of memory.
            if place.has_jobs():
                work(place, is_stopping, tally.on_progress)
    except FolderInUse:
        # The other worker does the jobs.
        context.output.result(WorkReport(0, 0, another_works=True))
        return ExitCode.OK
    context.output.result(WorkReport(len(tally.done), tally.records))
    return ExitCode.OK
