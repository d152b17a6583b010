"""`strandline bench export`: exports stored samples to Parquet files with a worker in this process, and compares with a
peer.

Measures the CPU time of this process, including Cassandra's client, from the plan to the manifest of the day. The peer,
VictoriaMetrics, gets the same samples, and exports them as JSON lines with its export API. For it, the CPU time of its
process is measured. Optionally, the Spark data source reads the samples as well.
"""

import http.client
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import quote, urlsplit

import numpy as np

from strandline.arrays import F64s, I64s
from strandline.clock import SystemClock
from strandline.errors import Fatal
from strandline.index.documents import encode_part_key
from strandline.jobs.board import BulkBoard
from strandline.jobs.exporting.export_kind import EXPORT, ExportKind
from strandline.jobs.exporting.planning import ExportOptions, StoredState, plan_export
from strandline.jobs.worker import BulkWorker
from strandline.node.bench.machine import MIB, Machine
from strandline.node.bench.process_memory import peak_resident_bytes
from strandline.node.bench.query_servers import (
    PEER_MISSING,
    PEER_PROGRAM,
    Server,
    free_port,
    peer_launch,
    peer_program,
    running,
    wait_until_idle,
)
from strandline.node.bench.stored_load import StoredKeys, StoredLoad
from strandline.node.bulk.adding import add_job
from strandline.node.bulk.exporting import export_job
from strandline.node.bulk.reports import JobStatus
from strandline.node.output import Block, Table
from strandline.node.settings.clients import cassandra_connection, librdkafka_options
from strandline.node.settings.load import load_settings
from strandline.node.settings.sections import Settings
from strandline.node.settings.writing import write_settings
from strandline.node.shard.kafka_topics import create_topic
from strandline.node.stack import Stack, StackOptions
from strandline.node.stack.stack import kafka_and_cassandra
from strandline.node.steps import Steps
from strandline.recovery.periods import HOUR, HOURS_A_DAY
from strandline.store.bulk_jobs import BulkJobState
from strandline.store.cassandra.store import open_cassandra_store
from strandline.store.protocol import Store
from strandline.store.rows import DatasetShape, ShardId

_DATASET, _GROUPS = "bench", 16
_DAY = HOURS_A_DAY * HOUR
_SELECTOR = "cpu_usage"
_ONE_SERIES = f'{_SELECTOR}{{host="host-0-0"}}'


class NotExported(Fatal):
    """A job of the benchmark failed, or the peer did not answer."""


@dataclass(frozen=True, slots=True)
class ExportLoad:
    """The load: the samples of one day (approximately), series, labels of each series, and shards."""

    samples: int
    series: int = 4_000
    labels: int = 3
    shards: int = 4

    @property
    def samples_an_hour(self) -> int:
        """The samples of each series in an hour."""
        return max(1, self.samples // self.series // HOURS_A_DAY)


@dataclass(frozen=True, slots=True)
class ExportFigures:
    """The result of one exporter. `cpu_seconds` is None if its process is not known, `bytes` if nothing is written, and
    `peak_bytes` if it is not measured.
    """

    exporter: str
    samples: int
    seconds: float
    cpu_seconds: float | None
    bytes: int | None
    peak_bytes: int | None


@dataclass(frozen=True, slots=True)
class ExportBenchReport:
    """The results of one run."""

    load: ExportLoad
    machine: Machine
    figures: tuple[ExportFigures, ...]
    remark: str

    def blocks(self) -> Iterator[Block]:
        """The results as a table."""
        load = self.load
        yield f"{load.samples:,} samples of {load.series:,} series with {load.labels} labels, {load.shards} shards"
        yield str(self.machine)
        yield ""
        rows = tuple(
            (
                one.exporter,
                f"{one.samples:,}",
                f"{one.samples / one.cpu_seconds:,.0f}" if one.cpu_seconds else "",
                f"{one.samples / one.seconds:,.0f}",
                f"{one.bytes / one.samples:.1f}" if one.bytes is not None else "",
                f"{one.peak_bytes / MIB:,.0f} MiB" if one.peak_bytes is not None else "",
            )
            for one in self.figures
        )
        yield Table(("exporter", "samples", "samples a CPU-second", "samples/s", "bytes a sample", "memory"), rows)
        if self.remark:
            yield self.remark


class ExportBench:
    """One run, with its own Cassandra in its own folder. With `on_spark`, also with a Spark session, and with a Kafka,
    because the Spark data source queries the topic.
    """

    def __init__(
        self, load: ExportLoad, folder: Path, steps: Steps, peer_url: str | None = None, *, on_spark: bool = False
    ) -> None:
        self._load, self._folder, self._steps, self._peer_url = load, folder, steps, peer_url
        self._on_spark = on_spark
        self._clock = SystemClock()
        self._start = (self._clock.now_ms() // _DAY - 2) * _DAY

    def run(self) -> ExportBenchReport:
        """Start the servers and measure."""
        options = StackOptions(state_dir=self._folder / "stack", optimise=True)
        first = 0 if self._on_spark else 1
        with self._steps.step("Starting Kafka and Cassandra" if self._on_spark else "Starting Cassandra"):
            stack = Stack.start(options, build=lambda *parts: kafka_and_cassandra(*parts)[first:])
        with stack:
            path = write_settings(self._folder / "export.toml", self._sections(stack))
            settings = load_settings(path, {})
            connection = cassandra_connection(settings.cassandra)
            copies = {settings.cassandra.local_datacenter: 1}
            with closing(open_cassandra_store(connection, self._clock, copies=copies)) as store:
                return self.run_on(store, settings, path)

    def run_on(self, store: Store, settings: Settings, path: Path | None = None) -> ExportBenchReport:
        """Measure with a store in which the dataset does not exist yet. Spark needs `path`, the settings file."""
        with self._steps.step("Storing samples"):
            self._fill(store, settings.dataset.name)
        with self._steps.step("Exporting one series first"):
            # Loads the kernels and connects the client, before the measurement.
            self._export(store, settings, _ONE_SERIES)
        with self._steps.step("Exporting") as step:
            ours = self._export(store, settings, _SELECTOR)
            step.note = f"{ours.samples / (ours.cpu_seconds or 1):,.0f} samples a CPU-second"
        spark = (self._spark(settings, path),) if self._on_spark and path is not None else ()
        peer, remark = self._peer()
        return ExportBenchReport(self._load, Machine.this(), (ours, *spark, *peer), remark)

    def _sections(self, stack: Stack) -> dict[str, dict[str, object]]:
        return {
            "cassandra": {
                "contact_points": [f"{stack.cassandra_host}:{stack.cassandra_port}"],
                "keyspace_copies": 1,
            },
            "dataset": {"name": _DATASET, "kafka_retention": "1h"},
            **({"kafka": {"bootstrap_servers": [stack.kafka_bootstrap]}} if self._on_spark else {}),
        }

    def _spark(self, settings: Settings, path: Path) -> ExportFigures:
        # Imported here because loading Spark's modules takes a second, and other benchmarks don't need them.
        from strandline.node.bench.spark_read_bench import source_session, spark_read  # noqa: PLC0415

        kafka, partitions = librdkafka_options(settings.kafka), self._load.shards
        create_topic(kafka, settings.dataset.topic_name, partitions=partitions, replication=1, retention_ms=None)
        with ExitStack() as opened:
            with self._steps.step("Starting Spark, and reading one series"):
                session = opened.enter_context(source_session(settings))
                spark_read(session, path, _ONE_SERIES, self._start, self._start + _DAY)
            with self._steps.step("Reading by Spark") as step:
                read = spark_read(session, path, _SELECTOR, self._start, self._start + _DAY)
                step.note = f"{read.samples / read.cpu_seconds:,.0f} samples a CPU-second"
        return ExportFigures("spark.read", read.samples, read.seconds, read.cpu_seconds, None, None)

    def _fill(self, store: Store, dataset: str) -> None:
        load = self._load
        shape = DatasetShape(dataset, HOUR, _GROUPS, "xxh3-128", load.shards)
        written = StoredLoad(store, shape, self._clock.now_ms())
        for shard in range(load.shards):
            keys = StoredKeys.of([encode_part_key(labels) for labels in self._labels(shard)])
            written.begin(shard, self._start // HOUR - 1)
            for hour in range(HOURS_A_DAY):
                new: dict[int, int] | None = None if hour == 0 else {}
                written.write(shard, self._start // HOUR + hour, keys, self._columns(len(keys.metric), hour), new=new)

    def _labels(self, shard: int) -> list[dict[str, str]]:
        load = self._load
        more = range(load.labels - 2)
        return [
            {"__name__": _SELECTOR, "host": f"host-{shard}-{number}"}
            | {f"label_{at}": f"v{number % (at + 3)}" for at in more}
            for number in range(load.series // load.shards)
        ]

    def _columns(self, series: int, hour: int) -> tuple[I64s, I64s, F64s]:
        each = self._load.samples_an_hour
        at = np.repeat(self._start + hour * HOUR + np.arange(each) * (HOUR // each), series)
        number = np.tile(np.arange(series), each)
        value = (number * 7919 + at // 1000) % 100_000 / 100
        return number, at, value

    def _export(self, store: Store, settings: Settings, selector: str) -> ExportFigures:
        dataset = settings.dataset.name
        to = self._folder / f"out-{len(list(self._folder.iterdir()))}"
        # Resets the peak.
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        began, cpu_began = time.perf_counter(), time.process_time()
        found = {shard: store.manifest(ShardId(dataset, shard)) for shard in range(self._load.shards)}
        manifests = {shard: rows for shard, rows in found.items() if rows is not None}
        stored = StoredState(dataset, _GROUPS, manifests, frozenset(), self._clock.now_ms())
        options = ExportOptions(str(to), selector, self._start, self._start + _DAY)
        planned = export_job(plan_export(store, stored, options, "plan"))
        board = BulkBoard(store, dataset, self._clock)
        if planned is None:
            raise NotExported(f"no samples of {selector} are stored")
        job = add_job(settings, board, planned, self._clock)
        kind = ExportKind(lambda: cast("Store", _UnclosedStore(store)), self._clock)
        BulkWorker(board, {EXPORT: kind}, self._clock, "bench").run_until_done(job.job)
        ended = board.job(job.job)
        status = JobStatus.of(ended, board.parts(ended))
        if status.state is not BulkJobState.DONE:
            raise NotExported(f"the export is {status.state}: {status.reason}")
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
        peak = peak_resident_bytes(os.getpid())
        return ExportFigures("strandline", status.counts.samples, seconds, cpu_seconds, status.counts.bytes, peak)

    def _peer(self) -> tuple[tuple[ExportFigures, ...], str]:
        program = peer_program()
        if self._peer_url is not None:
            where = urlsplit(self._peer_url)
            return (self._peer_export(Server(PEER_PROGRAM, where.hostname or "", where.port or 80)),), ""
        if program is None:
            return (), PEER_MISSING
        folder = self._folder / "peer"
        folder.mkdir()
        with running(peer_launch(program, folder, free_port()), self._clock) as server:
            return (self._peer_export(server),), ""

    def _peer_export(self, server: Server) -> ExportFigures:
        with self._steps.step(f"Sending the same samples to {server.name}"):
            for shard in range(self._load.shards):
                for body in self._json_lines(shard):
                    _request(server, "POST", "/api/v1/import", body)
            _request(server, "GET", "/internal/force_flush")
            if server.pid is not None:
                wait_until_idle(server.pids, self._clock)
        with self._steps.step(f"Exporting from {server.name}"):
            first = self._start // 1000
            path = f"/api/v1/export?match[]={quote(_SELECTOR)}&start={first}&end={first + _DAY // 1000}"
            _request(server, "GET", f"{path}&max_rows_per_line=1000000")
            began, cpu_began = time.perf_counter(), server.cpu_seconds()
            body = _request(server, "GET", path)
            seconds, cpu_ended = time.perf_counter() - began, server.cpu_seconds()
        cpu = cpu_ended - cpu_began if cpu_began is not None and cpu_ended is not None else None
        return ExportFigures(server.name, _count_samples(body), seconds, cpu, len(body), None)

    def _json_lines(self, shard: int) -> Iterator[bytes]:
        """The samples of a shard in the peer's import format, in bodies of up to 200 series."""
        series = self._labels(shard)
        each = [self._columns(len(series), hour) for hour in range(HOURS_A_DAY)]
        times = np.concatenate([at.reshape(-1, len(series)) for _, at, _ in each])
        values = np.concatenate([value.reshape(-1, len(series)) for _, _, value in each])
        lines: list[str] = []
        for column, labels in enumerate(series):
            metric = ",".join(f'"{name}":"{value}"' for name, value in labels.items())
            numbers = ",".join(map(str, values[:, column].tolist()))
            timestamps = ",".join(map(str, times[:, column].tolist()))
            lines.append(f'{{"metric":{{{metric}}},"values":[{numbers}],"timestamps":[{timestamps}]}}')
            if len(lines) == 200 or column == len(series) - 1:
                yield "\n".join(lines).encode()
                lines = []


def _count_samples(body: bytes) -> int:
    """The number of samples in JSON lines."""
    return sum(line.rpartition(b'"timestamps":')[2].count(b",") + 1 for line in body.splitlines() if line)


class _UnclosedStore:
    """A store that ignores `close`, so that a worker does not close the benchmark's store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def close(self) -> None:
        """Does nothing."""


def _request(server: Server, method: str, path: str, body: bytes | None = None) -> bytes:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=600)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        content = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise NotExported(f"{server.name} does not answer: {error!r}", remedy="Check that the peer runs") from error
    finally:
        connection.close()
    if answer.status >= 300:
        raise NotExported(f"{server.name} answered {answer.status} to {path}: {content[:200].decode(errors='replace')}")
    return content
