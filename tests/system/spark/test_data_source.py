"""Samples stored in a real Cassandra: exported by the command and read by pyarrow and Spark, and read by Spark's data
source; and a data frame written into a real Kafka. Every sample is compared.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession

from strandline.clock import SystemClock
from strandline.errors import ExitCode
from strandline.jobs.exporting.day_manifest import DayAction, DayManifest
from strandline.jobs.exporting.planning import ExportOptions
from strandline.node.bench.spark_read_bench import spark_read
from strandline.node.bulk.exporting import HoursNotReady, planned_export
from strandline.node.offsets.deployment import open_deployment
from strandline.node.settings.load import load_settings
from strandline.node.stack import Stack
from strandline.recovery.periods import HOUR, utc_text
from strandline.setup.installation import Installation
from strandline.spark.datasource import StrandlineDataSource
from strandline.spark.java_options import FAST_START, JAVA_OPTIONS
from strandline.spark.session import spark_session
from strandline.wire.decode import Limits, decode_batch
from support.deployment import BROKERS_TIMES, Deployment
from support.part_logs import committed_records
from support.stored_samples import DAY, Sample, Series, StoredSamples, rows_of_table

pytestmark = pytest.mark.system

# The last hours of yesterday.
END = SystemClock().now_ms() // DAY * DAY
HOURS = 3
FIRST = END // HOUR - HOURS


def moment(time: int) -> str:
    return utc_text(time).removesuffix("Z")


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    installed = Installation.load()
    properties = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        # As in a notebook's session: Spark has a daemon for each step of a data source, and each would load our
        # modules.
        "spark.python.daemon.module": "pyspark.daemon",
        "spark.sql.shuffle.partitions": "2",
        JAVA_OPTIONS: FAST_START,
    }
    with spark_session("source", properties, jars=installed.spark_jars, java_home=installed.java_home) as session:
        session.dataSource.register(StrandlineDataSource)
        yield session


@pytest.fixture(scope="module")
def deployment(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    folder = tmp_path_factory.mktemp("data-source")
    return Deployment(stack, folder, partitions=2, keyspace="data_source", topic=BROKERS_TIMES)


@pytest.fixture(scope="module")
def stored(deployment: Deployment) -> StoredSamples:
    """Two shards with late samples; the higher one also has some series of the lower one."""
    found = StoredSamples(deployment.store, SystemClock(), 2, deployment.name, FIRST)
    for bucket in range(FIRST, FIRST + HOURS):
        for shard in (0, 1):
            found.write(shard, bucket, scraped(bucket, range(shard * 30, shard * 30 + 40), 1000.0 * shard))
    late = [(labels, time, -value) for labels, time, value in scraped(FIRST, range(5))]
    found.write(0, FIRST + HOURS, late)
    found.write(1, FIRST + HOURS, [])
    return found


def scraped(bucket: int, hosts: range, value: float = 0.0) -> list[Sample]:
    return [
        (
            {"__name__": metric, "host": f"host-{host}", "empty-less": "ü"},
            bucket * HOUR + at * HOUR // 20,
            value + host + at / 8,
        )
        for metric in ("cpu", "memory")
        for host in hosts
        for at in range(20)
    ]


def rows_of_frame(frame: DataFrame) -> list[tuple[Series, int, float]]:
    return rows_of_table(frame.select("metric", "labels", "time", "value").toArrow())


def source(spark: SparkSession, deployment: Deployment, **options: str) -> DataFrame:
    reader = spark.read.format("strandline").option("config", str(deployment.settings))
    return reader.options(**options).load()


def test_pyarrow_and_spark_read_an_exported_day(
    spark: SparkSession, deployment: Deployment, stored: StoredSamples, tmp_path: Path
) -> None:
    to = tmp_path / "out"
    code, status = deployment.command(
        "job", "export", "cpu", "--to", str(to), "--start", moment(FIRST * HOUR), "--end", moment(END)
    )
    assert (code, status["state"]) == (ExitCode.OK, "done")
    expected = stored.expected(FIRST * HOUR, END, __name__="cpu")
    assert status["counts"]["samples"] == len(expected) == 70 * 20 * HOURS
    (path,) = to.glob("day=*/_manifest.json")
    manifest = DayManifest.from_json(path.read_bytes(), str(path))
    tables = [pq.ParquetFile(path.parent / file.name).read() for file in manifest.files]
    assert [row for table in tables for row in rows_of_table(table)] == expected
    frame = spark.read.parquet(*(str(path.parent / file.name) for file in manifest.files))
    assert sorted(rows_of_frame(frame)) == sorted(expected)
    with open_deployment(load_settings(deployment.settings, {}), {}, SystemClock()) as dataset:
        options = ExportOptions(str(to), "cpu", FIRST * HOUR, END)
        assert [day.choice for day in planned_export(dataset, options).days] == [DayAction.UNCHANGED]
        with pytest.raises(HoursNotReady, match=r"4[78] hours are not ready, the first is"):
            planned_export(dataset, replace(options, end=END + 2 * DAY))


def test_the_data_source_reads_the_data_at_the_time_of_its_creation(
    spark: SparkSession, deployment: Deployment, stored: StoredSamples
) -> None:
    start, end = FIRST * HOUR, END
    times = {"start": moment(start), "end": moment(end)}
    frame = source(spark, deployment, match='{__name__=~"c.u|memory",host=~"host-.*"}', task_samples="6000", **times)
    expected = sorted(stored.expected(start, end))
    assert sorted(rows_of_frame(frame)) == expected
    # Another bucket with a sample of these hours, which an existing frame does not include.
    stored.write(0, FIRST + HOURS + 1, [({"__name__": "cpu", "host": "late"}, start + 1, 1.0)])
    late = source(spark, deployment, match='cpu{host="late"}', **times)
    assert frame.union(late).count() == len(expected) + 1


def test_the_bench_reads_every_sample_and_measures_the_time(
    spark: SparkSession, deployment: Deployment, stored: StoredSamples
) -> None:
    start, end = FIRST * HOUR, END
    expected = stored.expected(start, end, __name__="memory")
    read = spark_read(spark, deployment.settings, "memory", start, end, task_samples="2000")
    assert (read.samples, read.total) == (len(expected), pytest.approx(sum(value for _, _, value in expected)))
    assert read.cpu_seconds > 0
    assert read.seconds > 0


def test_each_sample_of_an_appended_data_frame_lands_once(
    spark: SparkSession, deployment: Deployment, stored: StoredSamples, tmp_path: Path
) -> None:
    assert stored.model
    at = SystemClock().now_ms() // 1000 * 1000
    rows = [
        ("written", {"host": f"h{number % 7}"}, datetime.fromtimestamp((at - number * 1000) / 1000, UTC), number / 4)
        for number in range(500)
    ]
    frame = spark.createDataFrame(rows, "metric string, labels map<string,string>, time timestamp, value double")
    writer = frame.repartition(2).write.format("strandline").option("config", str(deployment.settings))
    writer.option("staging", str(tmp_path / "staging")).mode("append").save()
    assert not list((tmp_path / "staging").iterdir())
    landed: Any = SimpleNamespace(
        name=deployment.name,
        client=deployment.kafka,
        admin=AdminClient(deployment.kafka),
        partitions=lambda: deployment.partitions,
    )
    columns = decode_batch([value for _, value, _ in committed_records(landed)], Limits())
    assert not columns.faults
    found = sorted(zip(columns.time.tolist(), columns.value.tolist(), strict=True))
    assert found == sorted((round(time.timestamp() * 1000), value) for _, _, time, value in rows)
