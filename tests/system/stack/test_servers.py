"""The two servers from an application's point of view."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Cluster, Session
from cassandra.query import BatchStatement
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from strandline.node.stack import Stack

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def session(stack: Stack) -> Iterator[Session]:
    with Cluster([stack.cassandra_host], port=stack.cassandra_port, protocol_version=5) as cluster:
        session = cluster.connect()
        session.execute(
            "CREATE KEYSPACE stack_test WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
        )
        session.set_keyspace("stack_test")
        yield session
        session.execute("DROP KEYSPACE stack_test")


def listening_addresses(pid: int) -> set[str]:
    """The addresses, in the kernel's hexadecimal, on which a process listens."""
    links = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in links:
                found.add(fields[1].partition(":")[0])
    return found


def test_servers_listen_on_loopback_only(stack: Stack) -> None:
    for server in stack.record.servers:
        assert server.process is not None
        assert listening_addresses(server.process.pid) == {"0100007F"}


def test_topics_are_not_created_automatically(stack: Stack) -> None:
    name = f"typo-{uuid.uuid4()}"
    producer = Producer({"bootstrap.servers": stack.kafka_bootstrap})

    # A producer's metadata request would create the topic.
    error = producer.list_topics(name, 90).topics[name].error

    assert error is not None
    assert error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_transactions_and_append_times_work(stack: Stack) -> None:
    topic = f"stack-{uuid.uuid4()}"
    admin = AdminClient({"bootstrap.servers": stack.kafka_bootstrap})
    new = NewTopic(topic, num_partitions=2, replication_factor=1, config={"message.timestamp.type": "LogAppendTime"})
    admin.create_topics([new])[topic].result(90)
    producer = Producer({"bootstrap.servers": stack.kafka_bootstrap, "transactional.id": topic})
    producer.init_transactions(90)
    for value, ends in ((b"given up", producer.abort_transaction), (b"committed", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value, partition=1, timestamp=1)
        ends(90)
    consumer = Consumer({"bootstrap.servers": stack.kafka_bootstrap, "group.id": topic})
    consumer.assign([TopicPartition(topic, 1, 0)])
    message = consumer.poll(90)
    consumer.close()
    admin.delete_topics([topic])[topic].result(90)

    assert message is not None
    assert message.value() == b"committed"
    assert message.timestamp()[1] > 1


def test_conditional_batch_with_a_static_column_applies_once(session: Session) -> None:
    session.execute(
        "CREATE TABLE manifest (shard int, bucket int, epoch int STATIC, attempt text, PRIMARY KEY (shard, bucket)) "
        "WITH compaction = {'class': 'UnifiedCompactionStrategy'}"
    )
    session.execute("INSERT INTO manifest (shard, epoch) VALUES (1, 7) IF NOT EXISTS")

    def write(epoch: int, attempt: str) -> bool:
        batch = BatchStatement()
        batch.add("UPDATE manifest SET epoch = %s WHERE shard = 1 IF epoch = %s", (epoch, epoch))
        batch.add("INSERT INTO manifest (shard, bucket, attempt) VALUES (1, 5, %s)", (attempt,))
        return bool(session.execute(batch).was_applied)

    assert write(7, "ours")
    assert not write(6, "a zombie's")
    assert session.execute("SELECT attempt FROM manifest WHERE shard = 1 AND bucket = 5").one().attempt == "ours"


def test_rows_expire_under_time_windows(session: Session) -> None:
    session.execute(
        "CREATE TABLE segments (id int PRIMARY KEY, body blob) WITH default_time_to_live = 3600 AND compaction = "
        "{'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'HOURS', 'compaction_window_size': 1}"
    )
    session.execute("INSERT INTO segments (id, body) VALUES (1, %s)", (b"x" * 1_000_000,))

    row = session.execute("SELECT body, TTL(body) AS ttl FROM segments WHERE id = 1").one()

    assert len(row.body) == 1_000_000
    assert 0 < row.ttl <= 3600
