"""Builds the board of a dataset's jobs, and workers, from the settings."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager

from strandline.clock import Clock
from strandline.jobs.board import BulkBoard
from strandline.jobs.breaker import BreakerRules
from strandline.jobs.counts import AttemptCounts
from strandline.jobs.exporting.export_kind import EXPORT
from strandline.jobs.exporting.opener import ExportOpener
from strandline.jobs.importing.import_kind import IMPORT
from strandline.jobs.importing.opener import ImportOpener
from strandline.jobs.job_lifecycle import WorkerRules
from strandline.jobs.landing.kafka_group import KafkaGroups
from strandline.jobs.rate import Throttle, Throttles
from strandline.jobs.running import KindOpener, PartRunner
from strandline.jobs.sending.send_kind import SEND
from strandline.jobs.worker import BulkWorker
from strandline.jobs.worker_names import GoneWorkers, spark_worker_name
from strandline.node.bulk.lag import LagLimit
from strandline.node.bulk.send_opening import CompletionOpener, SendOpener
from strandline.node.client.series_source import nodes_of
from strandline.node.replay.openers import own_store_opener
from strandline.node.settings.clients import librdkafka_options
from strandline.node.settings.http_sections import HttpSettings
from strandline.node.settings.job_sections import JobsSettings
from strandline.node.settings.sections import Settings
from strandline.node.shard.assembling import open_store
from strandline.recovery.leasing import LeasePolicy
from strandline.recovery.worker_identity import Processes
from strandline.store.bulk_jobs import BulkPart

_RENEWALS_PER_LEASE = 6
# The timeout of requests for the shards' lag.
_LAG_TIMEOUT_S = 2.0
_KAFKA_TIMEOUT_S = 30.0


def expects_lags(settings: Settings) -> bool:
    """Whether a node is expected to report the shards' lag: only if one of these settings is not the default. A machine
    that only imports has no node, and should not log warnings about it.
    """
    return (
        settings.jobs.max_lag != JobsSettings().max_lag
        or bool(settings.jobs.node_urls)
        or settings.http.node_address != HttpSettings().node_address
    )


@contextmanager
def opened_board(settings: Settings, environ: Mapping[str, str], clock: Clock) -> Iterator[BulkBoard]:
    """The board of the dataset's jobs."""
    lease = settings.jobs.lease.milliseconds
    policy = LeasePolicy(lease, lease // _RENEWALS_PER_LEASE, settings.jobs.failures_allowed)
    with closing(open_store(settings, settings.shard.data_folder(environ), clock)) as store:
        gone = GoneWorkers(Processes().is_gone, clock)
        yield BulkBoard(store, settings.dataset.name, clock, policy, gone.is_gone)


def offset_retention_ms(settings: Settings, clock: Clock) -> int:
    """How long the brokers keep the committed offsets of a part. Raises `TopicMissing` if nothing could land."""
    with closing(KafkaGroups(librdkafka_options(settings.kafka), settings.dataset.topic_name, clock)) as groups:
        groups.require_topic(_KAFKA_TIMEOUT_S)
        return groups.offset_retention_ms(_KAFKA_TIMEOUT_S)


def kind_openers(settings: Settings) -> dict[str, KindOpener]:
    """The opener of each kind of job, which runs where the parts run: in this process, or on Spark's executors."""
    kafka, topic = librdkafka_options(settings.kafka), settings.dataset.topic_name
    return {
        IMPORT: ImportOpener(kafka, topic, CompletionOpener.of(settings)),
        EXPORT: ExportOpener(own_store_opener(settings, os.environ), CompletionOpener.of(settings)),
        SEND: SendOpener.of(settings),
    }


def worker(
    settings: Settings,
    board: BulkBoard,
    clock: Clock,
    *,
    rate: float | None = None,
    runner: PartRunner | None = None,
    stop: Callable[[], bool] = lambda: False,
    on_progress: Callable[[BulkPart, AttemptCounts], None] = lambda _part, _counts: None,
) -> BulkWorker:
    """A worker. `rate` limits it in samples per second, in addition to the jobs' own rates. Without a runner, it runs
    parts in this process.
    """
    kinds = {name: opener(clock) for name, opener in kind_openers(settings).items()}
    rules = WorkerRules(BreakerRules(settings.jobs.error_rate, settings.jobs.error_minimum))
    name = Processes().this_worker()
    throttles: list[Throttle] = []
    if settings.jobs.max_lag is not None:
        max_lag_s = settings.jobs.max_lag.seconds
        is_expected = expects_lags(settings)
        throttles += [
            LagLimit(node.client(_LAG_TIMEOUT_S), max_lag_s, clock, is_expected=is_expected)
            for node in nodes_of(settings)
        ]
    return BulkWorker(
        board,
        kinds,
        clock,
        name if runner is None else spark_worker_name(name),
        rules,
        runner=runner,
        throttle=Throttles(throttles),
        rate=rate,
        stop=stop,
        on_progress=on_progress,
    )
