"""The parts in order, and what each of them saw."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from strandline.clock import Clock
from strandline.errors import Fatal
from strandline.node.demo.cassandra_part import fence
from strandline.node.demo.data import METRICS, scrape
from strandline.node.demo.kafka_part import make_topic, produce
from strandline.node.demo.lucene_part import index_and_find
from strandline.node.output import Block, Table
from strandline.node.settings.clients import (
    cassandra_connection,
    java_kafka_options,
    librdkafka_options,
    spark_properties,
)
from strandline.node.settings.sections import CassandraSettings, KafkaSettings, SparkSettings
from strandline.node.steps import Steps
from strandline.setup.installation import Installation
from strandline.spark.decoding import tally_records
from strandline.spark.kafka_source import OffsetRange, read_ranges, source_options
from strandline.spark.session import spark_session
from strandline.store.connection import connect
from strandline.wire.decode import Limits

SERIES_A_RECORD = 2_000
RECORDS_A_SCRAPE = 10
SCRAPES = 3
SCRAPE_INTERVAL_MS = 15_000


class PartFailed(Fatal):
    """A part saw something else than it should have."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part: its name, what it saw, and how long it took."""

    name: str
    saw: str
    seconds: float


@dataclass(frozen=True, slots=True)
class DemoReport:
    """Every part, in the order in which they were shown."""

    parts: tuple[Part, ...]

    def blocks(self) -> Iterator[Block]:
        """A table of the parts."""
        yield Table(
            ("part", "what it saw", "time"),
            tuple((part.name, part.saw, f"{part.seconds:.1f} s") for part in self.parts),
        )


@dataclass(frozen=True, slots=True)
class Services:
    """What the parts run on."""

    kafka: KafkaSettings
    cassandra: CassandraSettings
    spark: SparkSettings
    installation: Installation


class Demo:
    """Shows the parts one after the other. Every part that is shown worked: one that did not raises `PartFailed`."""

    def __init__(self, services: Services, folder: Path, steps: Steps, clock: Clock) -> None:
        self._services = services
        self._folder = folder
        self._steps = steps
        self._clock = clock
        self._topic = f"strandline-demo-{clock.now_ms()}"

    def show(self) -> DemoReport:
        """Run the parts, each on what the one before it left."""
        bodies = self._make_records()
        counts: list[int] = []
        parts = [
            self._part("Kafka", lambda: self._kafka(bodies, counts)),
            self._part("Spark", lambda: self._spark(counts)),
            self._part("Cassandra", self._cassandra),
            self._part("Lucene", lambda: self._lucene(bodies)),
        ]
        return DemoReport(tuple(parts))

    def _part(self, name: str, run: Callable[[], str]) -> Part:
        began = self._clock.monotonic()
        with self._steps.step(name) as step:
            saw = run()
            step.note = saw
        return Part(name, saw, self._clock.monotonic() - began)

    def _make_records(self) -> list[bytes]:
        start = self._clock.now_ms()
        return [
            scrape(record * SERIES_A_RECORD, SERIES_A_RECORD, start + number * SCRAPE_INTERVAL_MS)
            for number in range(SCRAPES)
            for record in range(RECORDS_A_SCRAPE)
        ]

    def _kafka(self, bodies: list[bytes], counts: list[int]) -> str:
        client = librdkafka_options(self._services.kafka)
        make_topic(client, self._topic)
        counts += produce(client, self._topic, bodies)
        samples = len(bodies) * SERIES_A_RECORD
        return f"took {len(bodies)} remote-write records with {samples:,} samples in {len(counts)} partitions"

    def _spark(self, counts: list[int]) -> str:
        kafka = java_kafka_options(self._services.kafka)
        options = source_options(
            kafka["bootstrap.servers"],
            self._topic,
            [OffsetRange(partition, 0, count) for partition, count in enumerate(counts)],
            max_records_per_task=10,
            client=kafka,
        )
        installed = self._services.installation
        properties = spark_properties(self._services.spark)
        with spark_session("demo", properties, jars=installed.spark_jars, java_home=installed.java_home) as session:
            rows = tally_records(read_ranges(session, options), Limits()).collect()
        read, samples = sum(row.records for row in rows), sum(row.samples for row in rows)
        _expect("Spark", (read, samples), (sum(counts), sum(counts) * SERIES_A_RECORD))
        return f"read {read} records by explicit offsets, decoded {samples:,} samples with our kernels"

    def _cassandra(self) -> str:
        session = connect(cassandra_connection(self._services.cassandra), require_keyspace=False)
        try:
            seen = fence(session)
        finally:
            session.cluster.shutdown()
        _expect(
            "Cassandra", (seen.owner_applied, seen.former_owner_applied, seen.stored), (True, False, "by the owner")
        )
        return "applied the owner's conditional batch and refused the former owner's"

    def _lucene(self, bodies: list[bytes]) -> str:
        found = index_and_find(bodies, self._folder)
        series = SERIES_A_RECORD * RECORDS_A_SCRAPE
        _expect("Lucene", (found.keys, found.of_host, found.of_metric), (series, len(METRICS), series // len(METRICS)))
        return f"indexed {found.keys:,} part keys, found {found.of_host} by host and {found.of_metric:,} by metric"


def _expect(part: str, saw: object, wanted: object) -> None:
    if saw != wanted:
        raise PartFailed(f"{part} saw {saw}, not {wanted}", remedy="This is a bug: please report it")
