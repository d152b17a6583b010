"""The real parts in one chain: Kafka, Spark, the wire kernels, Lucene and Cassandra, on real traffic."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from strandline.index.key_table import KeyTable
from strandline.index.new_keys import new_key_batch
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.pylucene.queries import all_of, label_is
from strandline.index.vm import start_vm
from strandline.node.settings.clients import cassandra_connection
from strandline.node.settings.sections import CassandraSettings
from strandline.node.stack import Stack
from strandline.setup.installation import Installation
from strandline.spark.decoding import tally_records
from strandline.spark.kafka_source import OffsetRange, read_ranges, source_options
from strandline.spark.session import SparkUnavailable, spark_session
from strandline.store.connection import connect
from strandline.wire.decode import Limits, decode_batch
from strandline.wire.snappy import decompress
from support.capture import captured_bodies
from support.cassandra_part import fence
from support.kafka_part import make_topic
from support.remote_write import WriteRequest

pytestmark = pytest.mark.system

TOPIC = "parts-together"
RANGES = [OffsetRange(0, 3, 17), OffsetRange(1, 0, 20)]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    installed = Installation.load()
    properties = {"spark.master": "local[2]", "spark.driver.memory": "1g"}
    with spark_session("tests", properties, jars=installed.spark_jars, java_home=installed.java_home) as session:
        yield session


@pytest.fixture(scope="module")
def produced(stack: Stack) -> dict[tuple[int, int], bytes]:
    """Real remote-write bodies in Kafka: what lies at each (partition, offset)."""
    client = {"bootstrap.servers": stack.kafka_bootstrap}
    make_topic(client, TOPIC)
    placed: dict[tuple[int, int], bytes] = {}
    producer = Producer({**client, "acks": "all"})
    for number, body in enumerate(captured_bodies()):

        def delivered(error: object, message: object, body: bytes = body) -> None:
            assert error is None
            placed[message.partition(), message.offset()] = body

        producer.produce(TOPIC, value=body, partition=number % 2, on_delivery=delivered)
    assert producer.flush(30) == 0
    assert len(placed) == 40
    return placed


@pytest.fixture
def options(stack: Stack) -> dict[str, str]:
    return source_options(stack.kafka_bootstrap, TOPIC, RANGES, max_records_per_task=6, client={})


def test_spark_reads_exactly_the_offsets_that_it_was_given(
    spark: SparkSession, produced: dict[tuple[int, int], bytes], options: dict[str, str]
) -> None:
    rows = read_ranges(spark, options).collect()
    read = {(row.partition, row.offset): bytes(row.value) for row in rows}
    wanted = {
        (one.partition, offset): produced[one.partition, offset]
        for one in RANGES
        for offset in range(one.start, one.end)
    }
    assert len(rows) == len(read) == 34
    assert read == wanted


def test_sparks_workers_decode_records_with_the_wire_kernels(
    spark: SparkSession, produced: dict[tuple[int, int], bytes], options: dict[str, str]
) -> None:
    tallied = {
        row.partition: (row.records, row.samples, row.faults)
        for row in tally_records(read_ranges(spark, options), Limits()).collect()
    }
    for one in RANGES:
        samples = sum(
            len(series.samples)
            for offset in range(one.start, one.end)
            for series in WriteRequest.FromString(decompress(produced[one.partition, offset], limit=1 << 25)).timeseries
        )
        assert tallied[one.partition] == (one.end - one.start, samples, 0)


def test_a_second_spark_session_is_refused_instead_of_ending_the_first(spark: SparkSession) -> None:
    installed = Installation.load()
    second = spark_session(
        "second", {"spark.master": "local[1]"}, jars=installed.spark_jars, java_home=installed.java_home
    )
    with pytest.raises(SparkUnavailable, match="already"), second:
        pass
    assert spark.range(3).count() == 3


def test_cassandra_applies_the_owners_conditional_batch_and_no_former_owners(stack: Stack) -> None:
    address = f"{stack.cassandra_host}:{stack.cassandra_port}"
    session: Session = connect(
        cassandra_connection(CassandraSettings(contact_points=(address,))), require_keyspace=False
    )
    try:
        seen = fence(session)
        rows = list(session.execute("SELECT shard, bucket, epoch, content FROM strandline_demo.fenced"))
    finally:
        session.cluster.shutdown()
    assert (seen.owner_applied, seen.former_owner_applied) == (True, False)
    assert [tuple(row) for row in rows] == [(0, 7, 2, "by the owner")]


def test_lucene_finds_the_keys_of_real_traffic_through_our_extension(tmp_path: Path) -> None:
    bodies = captured_bodies()
    known = {
        tuple((label.name, label.value) for label in series.labels)
        for body in bodies
        for series in WriteRequest.FromString(decompress(body, limit=1 << 25)).timeseries
    }
    start_vm()
    columns = decode_batch(bodies, Limits())
    assigned = KeyTable().assign(columns.key_low, columns.key_high, next_row=0, most=1 << 20)
    with PartKeyIndex.open(tmp_path / "lucene") as index:
        assert index.add(new_key_batch(columns, assigned.new, assigned.rows[assigned.new])) == len(known)
        index.refresh()
        for label in (("__name__", "up"), ("job", "prometheus"), ("quantile", "0.99"), ("job", "no such job")):
            assert len(index.search(label_is(*label))) == sum(label in key for key in known)
        handlers = [("__name__", "prometheus_http_requests_total"), ("code", "200")]
        wanted = sum(all(label in key for label in handlers) for key in known)
        assert wanted > 0
        assert len(index.search(all_of([label_is(*label) for label in handlers]))) == wanted
