"""Creates the parts of a shard from the settings: Kafka's partition, the store, the folder. Checks everything that can
be checked before the shard is taken.
"""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import structlog

from strandline.clock import Clock
from strandline.disk import raising_disk_full
from strandline.index.vm import start_vm
from strandline.node.settings.clients import cassandra_connection, librdkafka_options
from strandline.node.settings.sections import Settings
from strandline.node.shard.configuring import shard_folder, shard_options
from strandline.node.shard.folder_lock import locked
from strandline.node.shard.index_storage import LuceneStorage
from strandline.node.shard.kafka_dead_letters import KafkaDeadLetters
from strandline.node.shard.kafka_log import KafkaLog
from strandline.node.shard.kafka_topics import BROKER_DEFAULT, check_topic, create_dead_topic
from strandline.node.shard.parts import ShardParts, StoreProgress
from strandline.node.shard.replaying import ReplayService
from strandline.node.shard.store_health import StoreHealth, watched
from strandline.node.shard.warm_up import WarmUp
from strandline.recovery.present import Present
from strandline.store.cassandra.retries import RetryPolicy
from strandline.store.cassandra.store import CassandraStore, open_cassandra_store
from strandline.store.protocol import Store
from strandline.store.rows import ShardId
from strandline.store.sqlite import open_sqlite_store
from strandline.store.sqlite.store import DEFAULT_BUSY_TIMEOUT

_LOG = structlog.get_logger(__name__)
# A step of the flusher writes segments, an index bucket and rows. Each call may wait for other writers of the file.
_SQLITE_CALLS_PER_STEP = 3


@contextmanager
def assembled(
    settings: Settings,
    shard: int,
    environment: Mapping[str, str],
    clock: Clock,
    *,
    replays: ReplayService | None = None,
) -> Iterator[ShardParts]:
    """The parts of one shard, open. Starts the JVM of this process."""
    own, kafka, dataset = settings.shard, librdkafka_options(settings.kafka), settings.dataset
    data_folder = own.data_folder(environment)
    folder = shard_folder(data_folder, dataset.name, shard)
    start_vm(own.java_heap.bytes >> 20)
    index_storage = LuceneStorage(
        ShardId(dataset.name, shard),
        folder / "index",
        dataset.retention.milliseconds,
        own.lucene_buffer.bytes / (1 << 20),
        own.index_refresh.seconds,
        clock,
    )
    with locked(folder), closing(index_storage), WarmUp(folder / "warm-up") as warm_up:
        index_storage.prepare()
        facts = check_topic(kafka, dataset.topic_name, dataset.flush_interval.milliseconds)
        options = shard_options(
            settings,
            shard=shard,
            partitions=facts.partitions,
            topic_retention_ms=facts.retention_ms,
            data_folder=data_folder,
        )
        owner_name = f"{socket.gethostname()}:{os.getpid()}"
        options = replace(options, owner_name=owner_name, topic_warning=facts.warning)
        if facts.warning:
            _LOG.warning("the topic puts records at risk", shard=str(options.shard), reason=facts.warning)
        create_dead_topic(kafka, dataset.topic_name, replication=BROKER_DEFAULT, retention_ms=facts.retention_ms)
        with closing(open_store(settings, data_folder, clock)) as store:
            warm_up.wait()
            log = KafkaLog(kafka, dataset=dataset.name, topic=dataset.topic_name, partition=shard)
            dead_letters, health = KafkaDeadLetters(kafka, dataset.topic_name), StoreHealth(store_name(settings), clock)
            progress, used = store_progress(settings, store), watched(store, health)
            present = Present(clock, used.server_time)
            yield ShardParts(
                options,
                log,
                used,
                index_storage,
                dead_letters,
                clock,
                present,
                replays,
                store_progress=progress,
                store_health=health,
            )


def store_name(settings: Settings) -> str:
    """The name of the store for messages."""
    if settings.store.kind == "sqlite":
        return "SQLite"
    return f"Cassandra at {cassandra_connection(settings.cassandra).hosts}"


def open_store(settings: Settings, data_folder: Path, clock: Clock) -> Store:
    """Open the store that the settings name."""
    if settings.store.kind == "sqlite":
        path = settings.store.sqlite_path(data_folder)
        with raising_disk_full(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
        return open_sqlite_store(path, clock)
    cassandra = settings.cassandra
    copies = {cassandra.local_datacenter: cassandra.keyspace_copies} if cassandra.keyspace_copies else None
    return open_cassandra_store(cassandra_connection(cassandra), clock, copies=copies)


def store_progress(settings: Settings, store: Store) -> StoreProgress:
    """How the progress of calls to a store is measured."""
    if isinstance(store, CassandraStore):
        # A write without an answer is followed by retries and a serial read, whose answers are not counted.
        silence_s = RetryPolicy().deadline + 2 * settings.cassandra.request_timeout.seconds
        return StoreProgress(lambda: store.writes_answered, silence_s)
    return StoreProgress(silence_s=_SQLITE_CALLS_PER_STEP * DEFAULT_BUSY_TIMEOUT)
