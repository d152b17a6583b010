"""`strandline recover plan`: shows what a start would replay."""

from collections.abc import Sequence
from contextlib import closing

import click

from strandline.clock import Clock
from strandline.errors import ExitCode
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with
from strandline.node.recovering.index_source import index_source
from strandline.node.recovering.plan_report import PlannedShard, PlanReport
from strandline.node.recovering.shard_plan import find_plan
from strandline.node.settings.clients import librdkafka_options
from strandline.node.settings.sections import Settings
from strandline.node.shard.assembling import open_store
from strandline.node.shard.configuring import shard_options
from strandline.node.shard.kafka_log import KafkaLog
from strandline.node.shard.kafka_topics import check_topic
from strandline.node.shard.options import ShardOptions
from strandline.recovery.cutting import Cutting
from strandline.recovery.estimates import Rates
from strandline.recovery.job_order import JobOrder
from strandline.recovery.offset_policy import DataLost, LogMismatch
from strandline.store.protocol import Store


@click.command(
    cls=Command,
    help=help_with(
        "Show what a start of shards would replay: the replay jobs with their records, bytes and estimated time, how "
        "long Kafka keeps the records, and where the index is loaded from. Takes no ownership and writes nothing.",
        "strandline recover plan",
        "strandline recover plan --shard 3 --shard 4 --output json",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE, ExitCode.DATA_LOST)),
)
@click.option("--shard", "shards", metavar="N", type=click.IntRange(min=0), multiple=True, help="Only these shards.")
@pass_context
def command(context: Context, *, shards: tuple[int, ...]) -> ExitCode:
    """Plan."""
    settings = context.settings()
    kafka, dataset = librdkafka_options(settings.kafka), settings.dataset
    facts = check_topic(kafka, dataset.topic_name, dataset.flush_interval.milliseconds)
    data_folder = settings.shard.data_folder(context.environ)
    wanted = [
        shard_options(
            settings,
            shard=shard,
            partitions=facts.partitions,
            topic_retention_ms=facts.retention_ms,
            data_folder=data_folder,
        )
        for shard in _chosen(shards, facts.partitions, dataset.topic_name)
    ]
    cutting = Cutting(dataset.flush_interval.milliseconds, dataset.grace.milliseconds)
    job_order, rates = JobOrder(cutting, facts.retention_ms), Rates()
    with closing(open_store(settings, data_folder, context.clock)) as store, context.output.steps("Planning") as steps:
        found: list[PlannedShard] = []
        for options in wanted:
            with steps.step(f"Shard {options.shard.shard}"):
                found.append(_planned(settings, options, store, job_order, rates=rates, clock=context.clock))
    report = PlanReport.of(dataset.name, dataset.topic_name, job_order, rates, found)
    context.output.result(report)
    return report.exit_code


def _chosen(shards: Sequence[int], partitions: int, topic: str) -> list[int]:
    for shard in shards:
        if shard >= partitions:
            raise click.BadParameter(f"topic {topic} has no partition {shard}, only {partitions} partitions")
    return sorted(set(shards)) or list(range(partitions))


def _planned(
    settings: Settings, options: ShardOptions, store: Store, job_order: JobOrder, *, rates: Rates, clock: Clock
) -> PlannedShard:
    shard, dataset = options.shard, settings.dataset
    log = KafkaLog(
        librdkafka_options(settings.kafka), dataset=dataset.name, topic=dataset.topic_name, partition=shard.shard
    )
    with closing(log):
        try:
            found = find_plan(options, log, store, clock)
        except (DataLost, LogMismatch) as error:
            # The other shards are still planned.
            return PlannedShard.refused(shard.shard, error)
    heap_mb = settings.shard.java_heap.bytes >> 20
    source = index_source(shard, options.folder / "index", found.topic_id, found.index_rows, heap_mb=heap_mb)
    return PlannedShard.of(shard.shard, found, source, job_order, rates=rates, now=clock.now_ms())
