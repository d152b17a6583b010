"""From settings to the parts of a shard: Kafka's partition, the store, the folder, with everything checked that can be
checked before the shard is taken.
"""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from strandline.clock import Clock
from strandline.index.vm import start_vm
from strandline.node.settings.clients import cassandra_connection, librdkafka_options
from strandline.node.settings.sections import Settings
from strandline.node.settings.shards import shard_folder, shard_options
from strandline.node.shard.documents_home import LuceneHome
from strandline.node.shard.folder_lock import locked
from strandline.node.shard.kafka_dead_letters import KafkaDeadLetters
from strandline.node.shard.kafka_log import KafkaLog
from strandline.node.shard.kafka_topics import AS_BROKERS_SAY, check_topic, create_dead_topic
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.rehearsal import Rehearsal
from strandline.node.shard.replaying import ReplayService
from strandline.store.cassandra.store import open_cassandra_store
from strandline.store.protocol import Store
from strandline.store.rows import ShardId
from strandline.store.sqlite import open_sqlite_store


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
    home = LuceneHome(
        ShardId(dataset.name, shard),
        folder / "index",
        dataset.retention.milliseconds,
        own.lucene_buffer.bytes / (1 << 20),
        own.index_refresh.seconds,
        clock,
    )
    with locked(folder), closing(home), Rehearsal(folder / "rehearsal") as rehearsal:
        home.prepare()
        facts = check_topic(kafka, dataset.topic_name, dataset.flush_interval.milliseconds)
        options = shard_options(
            settings,
            shard=shard,
            partitions=facts.partitions,
            topic_retention_ms=facts.retention_ms,
            data_folder=data_folder,
        )
        options = replace(options, owner_name=f"{socket.gethostname()}:{os.getpid()}")
        create_dead_topic(kafka, dataset.topic_name, replication=AS_BROKERS_SAY, retention_ms=facts.retention_ms)
        with closing(open_store(settings, data_folder, clock)) as store:
            rehearsal.wait()
            log = KafkaLog(kafka, dataset=dataset.name, topic=dataset.topic_name, partition=shard)
            yield ShardParts(options, log, store, home, KafkaDeadLetters(kafka, dataset.topic_name), clock, replays)


def open_store(settings: Settings, data_folder: Path, clock: Clock) -> Store:
    """The store that the settings name."""
    if settings.store.kind == "sqlite":
        path = settings.store.sqlite_path(data_folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        return open_sqlite_store(path, clock)
    cassandra = settings.cassandra
    copies = {cassandra.local_datacenter: cassandra.keyspace_copies} if cassandra.keyspace_copies else None
    return open_cassandra_store(cassandra_connection(cassandra), clock, copies=copies)
