"""The input and output of replays and imports on Spark, created once for all tests of this folder."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from confluent_kafka.cimpl import NewTopic

from strandline.clock import ManualClock, SystemClock, wait_until
from strandline.node.bench.replay_bench import sampler_of, scraped_bodies
from strandline.node.stack import Stack
from strandline.spark.replay import KafkaTopic
from strandline.store.cassandra.store import open_cassandra_store
from support.cassandra_store import COPIES, connection_to
from support.executor_imports import Imports, imports_into
from support.replayed_topic import (
    LATE_RECORDS,
    MINUTE,
    SCRAPES,
    SERIES,
    START,
    TOPIC,
    Log,
    ReplayEnvironment,
    produce,
    read_log,
)
from support.replays import POISON


def is_decided(admin: AdminClient) -> bool:
    """Whether the second partition has no open transaction any longer."""
    place = TopicPartition(TOPIC, 1)
    ends = [
        admin.list_offsets({place: OffsetSpec.latest()}, isolation_level=level)[place].result(90).offset
        for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
    ]
    return ends[0] == ends[1]


@pytest.fixture(scope="session")
def log(stack: Stack) -> Log:
    """Two partitions with scrapes, an undecodable record, one without a value, and an aborted transaction; and samples
    that are too old for their records, one of which is marked as checked, and one of which has no time.
    """
    client = {"bootstrap.servers": stack.kafka_bootstrap, "log_level": 0}
    admin = AdminClient(client)
    for made in admin.create_topics([NewTopic(TOPIC, 2, 1, config={"retention.ms": "-1"})]).values():
        made.result(90)
    bodies = list(scraped_bodies(SERIES, SERIES * SCRAPES, START))
    producer = Producer({**client, "acks": "all"})
    for partition in (0, 1):
        for number, body in enumerate(bodies):
            produce(producer, partition, body, START + number)
            if number == 30:
                produce(producer, partition, POISON, START + 7)
                produce(producer, partition, None, START + 8)
    assert producer.flush(90) == 0
    aborted = Producer({**client, "transactional.id": f"{TOPIC}-aborted"})
    aborted.init_transactions(90)
    aborted.begin_transaction()
    produce(aborted, 1, bodies[0], START)
    aborted.flush(90)
    aborted.abort_transaction(90)
    # The broker writes the marker after its answer.
    assert wait_until(lambda: is_decided(admin), timeout=120, clock=SystemClock(), poll=0.05)
    # A record after the marker, with another value for an earlier sample.
    produce(producer, 1, next(scraped_bodies(SERIES, SERIES, START)), START)
    for number, (time, headers) in enumerate(LATE_RECORDS):
        late = next(scraped_bodies(SERIES, SERIES, START + (40 + number) * MINUTE))
        for partition in (0, 1):
            produce(producer, partition, late, time, headers)
    assert producer.flush(90) == 0
    return read_log(client)


@pytest.fixture(scope="session")
def places(stack: Stack) -> Iterator[ReplayEnvironment]:
    connection = connection_to(stack, "replayed")
    with (
        closing(open_cassandra_store(connection, SystemClock(), copies=COPIES)) as store,
        closing(sampler_of(stack.kafka_bootstrap, TOPIC)) as sampler,
    ):
        topic = KafkaTopic(stack.kafka_bootstrap, TOPIC, {})
        # It is stopped, so that two runs write the same dates.
        yield ReplayEnvironment(connection, store, topic, sampler, ManualClock(SystemClock().now_ms()))


@pytest.fixture(scope="session")
def imports(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imports]:
    """A file that a worker without Spark has imported, as the job `in-process`. The file is the same for every process
    that runs tests, so that imports on a local Spark and on a cluster can be compared with it.
    """
    with imports_into(stack.kafka_bootstrap, tmp_path_factory.mktemp("imports")) as opened:
        job = opened.planned("in-process")
        opened.worker().run_until_done(job.job)
        yield opened
