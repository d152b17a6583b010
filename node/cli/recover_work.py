"""`strandline recover work`: a worker that does replay jobs on Spark."""

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
    """What a worker did; nothing, if another one of this node was at work."""

    jobs: int
    records: int
    another_works: bool = False

    def blocks(self) -> list[Block]:
        """For people."""
        if self.another_works:
            return ["Another worker of this node is at work already."]
        if not self.jobs:
            return ["There was no job to do."]
        return [f"{self.jobs:,} jobs are done, of {self.records:,} offsets."]


class _Tally:
    """Counts the jobs whose waves came to their end."""

    def __init__(self) -> None:
        self.done: set[tuple[object, ...]] = set()
        self.records = 0

    def heard(self, progress: WaveProgress) -> None:
        if progress.fraction < 1.0:
            return
        for job in progress.jobs:
            place = (job.shard, job.bucket, job.epoch)
            if place not in self.done:
                self.done.add(place)
                self.records += job.end - job.start


@click.command(
    cls=Command,
    help=help_with(
        "Do replay jobs of the dataset on Spark until none is left. A node starts such a worker itself when its shards "
        "have much to catch up on; run more of them, on other hosts, to be done sooner. A node has one at a time.",
        "strandline recover work",
        "strandline recover work --config /etc/strandline/strandline.toml",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE)),
)
@click.option(
    "--socket",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Report at this socket of the machine that the worker is alive, for a node that watches it.",
)
@pass_context
def command(context: Context, *, socket: Path | None) -> ExitCode:
    """Work."""
    settings = context.settings()
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    tally = _Tally()
    # Patient: Spark's session and some calls of a wave take a while, in which the worker's loop does not turn.
    reports = ProcessReports(Stage.STARTING)

    def is_stopping() -> bool:
        """Asked in each turn of the worker's loop, and of that which waits for Spark."""
        reports.iterated()
        return stopping.is_set()

    try:
        with ExitStack() as opened:
            if socket is not None:
                opened.enter_context(LinkServer(socket, reports, context.clock))
            place = opened.enter_context(worker_context(settings, context.environ, context.clock))
            # A Spark session takes seconds and a gigabyte.
            if place.has_jobs():
                work(place, is_stopping, tally.heard)
    except FolderInUse:
        # Whoever wants something done has it done by that one.
        context.output.result(WorkReport(0, 0, another_works=True))
        return ExitCode.OK
    context.output.result(WorkReport(len(tally.done), tally.records))
    return ExitCode.OK
