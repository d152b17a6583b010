"""Builds a Spark replay worker from the settings, and runs it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from strandline.clock import Clock
from strandline.node.replay.kafka_records import CheckedRunner, LogSampler
from strandline.node.replay.openers import store_opener
from strandline.node.replay.service import worker_folder
from strandline.node.settings.clients import java_kafka_options, librdkafka_options, spark_properties
from strandline.node.settings.sections import Settings
from strandline.node.shard.assembling import open_store
from strandline.node.shard.configuring import shard_options
from strandline.node.shard.folder_lock import locked
from strandline.node.shard.kafka_log import KafkaLog
from strandline.node.shard.kafka_topics import TopicFacts, check_topic
from strandline.recovery.cutting import Cutting
from strandline.recovery.job_order import JobOrder
from strandline.recovery.leasing import LeasePolicy, is_open
from strandline.recovery.replay.replay_input import ReplaySettings as ReplayInputSettings
from strandline.recovery.replay_worker import ReplayWorker, WaveProgress, WorkerOptions
from strandline.recovery.worker_identity import Processes
from strandline.setup.installation import Installation
from strandline.spark.replay import KafkaTopic, ReplayEndpoints, SparkRunner
from strandline.spark.session import spark_session
from strandline.store.protocol import Store
from strandline.store.rows import ShardId

_RENEWALS_PER_LEASE = 6


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """What a worker needs: the settings, the node's folder, the store, and the facts about the topic."""

    settings: Settings
    folder: Path
    store: Store
    facts: TopicFacts
    clock: Clock

    @property
    def shards(self) -> tuple[ShardId, ...]:
        """All shards of the dataset: a worker may run the jobs of any of them."""
        return tuple(ShardId(self.settings.dataset.name, number) for number in range(self.facts.partitions))

    def has_jobs(self) -> bool:
        """Whether there are open jobs."""
        return any(is_open(job) for shard in self.shards for job in self.store.jobs(shard))


@contextmanager
def worker_context(settings: Settings, environ: Mapping[str, str], clock: Clock) -> Iterator[WorkerContext]:
    """The context of this node's worker. Raises `FolderInUse` if another worker is running."""
    folder = settings.shard.data_folder(environ)
    facts = check_topic(
        librdkafka_options(settings.kafka), settings.dataset.topic_name, settings.dataset.flush_interval.milliseconds
    )
    with locked(worker_folder(settings, environ)), closing(open_store(settings, folder, clock)) as store:
        yield WorkerContext(settings, folder, store, facts, clock)


def work(context: WorkerContext, stop: Callable[[], bool], on_progress: Callable[[WaveProgress], None]) -> None:
    """Start a Spark session and run jobs until there were none for `replay.worker_idle`, or until `stop`."""
    settings, installed = context.settings, Installation.load()
    properties = spark_properties(settings.spark)
    with (
        closing(_sampler(settings)) as sampler,
        spark_session(
            f"strandline replay of {settings.dataset.name}",
            properties,
            jars=installed.spark_jars,
            java_home=installed.java_home,
        ) as session,
    ):
        kafka = settings.kafka
        topic = KafkaTopic(",".join(kafka.bootstrap_servers), settings.dataset.topic_name, java_kafka_options(kafka))
        places = ReplayEndpoints(topic, sampler, context.store, store_opener(settings, context.folder))
        runner = SparkRunner(session, places, replay_settings(context), context.clock)
        processes = Processes()
        worker = ReplayWorker(
            context.store,
            context.shards,
            CheckedRunner(runner, context.store, sampler),
            context.clock,
            processes.this_worker(),
            job_order=job_order(context),
            options=WorkerOptions(settings.replay.wave_records, lease_policy(settings)),
            is_gone=processes.is_gone,
            on_progress=on_progress,
        )
        worker.run_until_done(stop, settings.replay.worker_idle.seconds)


def replay_settings(context: WorkerContext) -> ReplayInputSettings:
    """The settings for jobs that have none: those of a shard with these settings."""
    options = shard_options(
        context.settings,
        shard=0,
        partitions=context.facts.partitions,
        topic_retention_ms=context.facts.retention_ms,
        data_folder=context.folder,
    )
    return options.replay_settings


def job_order(context: WorkerContext) -> JobOrder:
    """How soon Kafka deletes the records of jobs."""
    dataset = context.settings.dataset
    return JobOrder(
        Cutting(dataset.flush_interval.milliseconds, dataset.grace.milliseconds), context.facts.retention_ms
    )


def lease_policy(settings: Settings) -> LeasePolicy:
    """Duration and renewal of leases, and the number of allowed failures."""
    lease = settings.replay.lease.milliseconds
    return LeasePolicy(lease, lease // _RENEWALS_PER_LEASE, settings.replay.failures_allowed)


def _sampler(settings: Settings) -> LogSampler:
    kafka, dataset = librdkafka_options(settings.kafka), settings.dataset
    return LogSampler(lambda shard: KafkaLog(kafka, dataset=dataset.name, topic=dataset.topic_name, partition=shard))
