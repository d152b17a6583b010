"""`strandline recover work`: a worker that does replay jobs on Spark."""

import signal
import threading
from dataclasses import dataclass

import click

from strandline.errors import ExitCode
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with
from strandline.node.output import Block
from strandline.node.replay.spark_worker import work, worker_place
from strandline.node.shard.folder_lock import FolderInUse
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
        "Do replay jobs of the dataset on Spark until none is left. Shards that have much to catch up on start such a "
        "worker themselves; run more of them, on other hosts, to be done sooner. A node has one at a time.",
        "strandline recover work",
        "strandline recover work --config /etc/strandline/strandline.toml",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE)),
)
@pass_context
def command(context: Context) -> ExitCode:
    """Work."""
    settings = context.settings()
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    tally = _Tally()
    try:
        with worker_place(settings, context.environ, context.clock) as place:
            # A Spark session takes seconds and a gigabyte.
            if place.has_jobs():
                work(place, stopping.is_set, tally.heard)
    except FolderInUse:
        # Whoever wants something done has it done by that one.
        context.output.result(WorkReport(0, 0, another_works=True))
        return ExitCode.OK
    context.output.result(WorkReport(len(tally.done), tally.records))
    return ExitCode.OK
