"""`strandline recover run`: catches up the shards of a node that is down."""

import signal
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

import click

from strandline.errors import ExitCode, Fatal
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with, take_option
from strandline.node.output import Block, Table
from strandline.node.replay.catching_up import CatchingUp, CaughtUp, Task
from strandline.node.replay.service import WorkerProcess, worker_folder
from strandline.node.settings.clients import librdkafka_options
from strandline.node.settings.sections import Settings
from strandline.node.shard.heap import limit_arenas
from strandline.node.shard.kafka_topics import check_topic
from strandline.node.steps import Step
from strandline.recovery.offset_policy import Accepted


class NoSuchShard(Fatal):
    """The topic has no such partition."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class RunReport:
    """The outcome of each shard."""

    shards: tuple[CaughtUp, ...]

    def blocks(self) -> list[Block]:
        """A table, and the errors."""
        rows = tuple(
            (
                str(one.shard),
                "failed" if one.error else "caught up",
                f"{one.buckets:,}",
                f"{one.records:,}",
                f"{one.samples:,}",
                f"{one.new_keys:,}",
                f"{one.dead_letters:,}",
                f"{one.seconds:.1f} s",
            )
            for one in self.shards
        )
        columns = ("shard", "", "buckets", "records", "samples", "new series", "dead letters", "time")
        found: list[Block] = [Table(columns, rows)]
        for one in self.shards:
            if one.error:
                found.append(f"Shard {one.shard}: {one.error}")
                found += [f"  {one.remedy}"] if one.remedy else []
        return found


@click.command(
    cls=Command,
    help=help_with(
        "Catch up shards whose node is down: take their ownership, read the missed records up to the last complete "
        "bucket, store them, and release the ownership. The node's next start reads the tail, which is fast.",
        "strandline recover run",
        "strandline recover run --shard 3 --shard 4 --mode direct",
        "strandline recover run --shard 3 --accept-loss 120034 --take",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE, ExitCode.DATA_LOST, ExitCode.FENCED)),
)
@click.option("--shard", "shards", metavar="N", type=click.IntRange(min=0), multiple=True, help="Only these shards.")
@click.option(
    "--mode",
    type=click.Choice(["auto", "direct", "spark"]),
    help="How records are read. [default: the setting replay.mode]",
)
@click.option("--at-once", type=click.IntRange(1, 64), default=2, show_default=True, help="Number of shards at a time.")
@take_option
@click.option(
    "--accept-loss",
    metavar="OFFSET",
    type=click.IntRange(min=0),
    help="Continue although Kafka has deleted unstored records below this offset; needs exactly one --shard.",
)
@click.option(
    "--accept-index-loss",
    is_flag=True,
    help="Continue although index buckets are damaged that can't be rebuilt from Kafka. Keys only in them are lost.",
)
@pass_context
def command(
    context: Context,
    *,
    shards: Sequence[int],
    mode: str | None,
    at_once: int,
    take: bool,
    accept_loss: int | None,
    accept_index_loss: bool,
) -> ExitCode:
    """Catch up."""
    if accept_loss is not None and len(shards) != 1:
        raise click.UsageError("--accept-loss needs exactly one --shard: offsets differ between shards")
    settings = _with_mode(context.settings(), mode)
    limit_arenas()
    wanted = _wanted(settings, shards)
    tasks = [Task(shard, take, Accepted(loss_to=accept_loss, index_loss=accept_index_loss)) for shard in wanted]
    with (
        closing(WorkerProcess(context.loaded.file, worker_folder(settings, context.environ), context.clock)) as worker,
        context.output.steps(f"Catching up {len(wanted)} shards of {settings.dataset.name}") as steps,
        ExitStack() as under_way,
    ):
        catching_up = CatchingUp(settings, context.environ, context.clock, worker, at_once=min(at_once, len(wanted)))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: catching_up.stop())
        shown = {shard: under_way.enter_context(steps.step(f"Shard {shard}")) for shard in wanted}
        report = RunReport(tuple(catching_up.run(tasks, lambda: _show(catching_up, shown))))
        _show(catching_up, shown)
    context.output.result(report)
    return max((one.exit_code for one in report.shards), default=ExitCode.OK)


def _with_mode(settings: Settings, mode: str | None) -> Settings:
    if mode is None:
        return settings
    return settings.model_copy(update={"replay": settings.replay.model_copy(update={"mode": mode})})


def _wanted(settings: Settings, shards: Sequence[int]) -> list[int]:
    dataset = settings.dataset
    facts = check_topic(librdkafka_options(settings.kafka), dataset.topic_name, dataset.flush_interval.milliseconds)
    for shard in shards:
        if shard >= facts.partitions:
            raise NoSuchShard(
                f"there is no shard {shard}: topic {dataset.topic_name} has {facts.partitions} partitions",
                remedy=f"Give a number from 0 to {facts.partitions - 1}, or none for all",
            )
    return sorted(set(shards)) or list(range(facts.partitions))


def _show(catching_up: CatchingUp, shown: dict[int, Step]) -> None:
    for shard, step in shown.items():
        status = catching_up.status(shard)
        if status is not None:
            step.note = status.phase.value
            step.fraction = status.fraction
