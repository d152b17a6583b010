"""`strandline bench import`: files into committed records of a real Kafka, by a worker in this process.

What counts is the CPU time of this process while the worker runs, Kafka's client included. The shard that would read
the records is not part of it: `bench ingest` measures that.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strandline.clock import SystemClock
from strandline.errors import Fatal
from strandline.jobs.board import BulkBoard
from strandline.jobs.importing.planning import plan_import
from strandline.jobs.importing.spec import Format
from strandline.node.bench.machine import MIB, Machine
from strandline.node.bulk.adding import add_job
from strandline.node.bulk.importing import import_options, planned_import
from strandline.node.bulk.opening import worker
from strandline.node.bulk.reports import JobStatus
from strandline.node.output import Block, Table
from strandline.node.settings.clients import librdkafka_options
from strandline.node.settings.load import load_settings
from strandline.node.settings.sections import Settings
from strandline.node.settings.writing import write_settings
from strandline.node.shard.kafka_topics import create_topic
from strandline.node.stack import Stack, StackOptions
from strandline.node.stack.stack import kafka_and_cassandra
from strandline.node.steps import Steps
from strandline.store.bulk_jobs import BulkJobState
from strandline.store.sqlite import open_sqlite_store

FILE_FORMATS = (Format.CSV, Format.OPENMETRICS, Format.JSONL)
_DATASET = "bench"
_INTERVAL_MS = 15_000
_CSV = {"metric": "cpu_usage", "value": "usage", "time": {"column": "at", "unit": "ms"}, "labels": ["host", "dc"]}
_LINES_AT_ONCE = 100_000


class NotImported(Fatal):
    """A job of the bench did not end well."""


@dataclass(frozen=True, slots=True)
class ImportLoad:
    """So many samples of so many series, in files of these formats, into so many partitions."""

    samples: int
    series: int = 4_000
    formats: tuple[Format, ...] = FILE_FORMATS
    partitions: int = 4


@dataclass(frozen=True, slots=True)
class FormatFigures:
    """One format. CPU seconds are those of this process."""

    format: str
    file_bytes: int
    samples: int
    seconds: float
    cpu_seconds: float
    kafka_bytes: int

    @property
    def samples_per_cpu_second(self) -> float:
        return self.samples / self.cpu_seconds


@dataclass(frozen=True, slots=True)
class ImportBenchReport:
    """All figures of one run."""

    load: ImportLoad
    machine: Machine
    figures: tuple[FormatFigures, ...]

    def blocks(self) -> Iterator[Block]:
        """The figures as a table."""
        load = self.load
        yield f"{load.samples:,} samples of {load.series:,} series, {load.partitions} partitions"
        yield str(self.machine)
        yield ""
        rows = tuple(
            (
                one.format,
                f"{one.file_bytes / MIB:,.0f} MiB",
                f"{one.samples_per_cpu_second:,.0f}",
                f"{one.samples / one.seconds:,.0f}",
                f"{1e9 * one.cpu_seconds / one.samples:,.0f}",
                f"{one.kafka_bytes / one.samples:.1f}",
            )
            for one in self.figures
        )
        columns = ("format", "file", "samples a CPU-second", "samples/s", "ns a sample", "bytes a sample in Kafka")
        yield Table(columns, rows)


class ImportBench:
    """One run, with a Kafka of its own in a folder of its own. Jobs are kept in a SQLite file."""

    def __init__(self, load: ImportLoad, folder: Path, steps: Steps) -> None:
        self._load, self._folder, self._steps = load, folder, steps
        self._clock = SystemClock()

    def run(self) -> ImportBenchReport:
        """Start Kafka and measure."""
        options = StackOptions(state_dir=self._folder / "stack", optimise=True)
        with self._steps.step("Starting Kafka"):
            stack = Stack.start(options, build=lambda *parts: kafka_and_cassandra(*parts)[:1])
        with stack:
            return self.run_on(stack)

    def run_on(self, stack: Stack, dataset: str = _DATASET) -> ImportBenchReport:
        """Measure with a Kafka that runs, in a topic that there is not."""
        path = write_settings(
            self._folder / "import.toml",
            {
                "kafka": {"bootstrap_servers": [stack.kafka_bootstrap]},
                "dataset": {"name": dataset, "kafka_retention": "1h"},
                "store": {"kind": "sqlite"},
                "shard": {"data_dir": str(self._folder / "data")},
            },
        )
        settings = load_settings(path, {})
        kafka = librdkafka_options(settings.kafka)
        create_topic(kafka, dataset, partitions=self._load.partitions, replication=1, retention_ms=None)
        with closing(open_sqlite_store(self._folder / "jobs.sqlite", self._clock)) as store:
            board = BulkBoard(store, dataset, self._clock)
            figures = tuple(self._measured(board, settings, one) for one in self._load.formats)
        return ImportBenchReport(self._load, Machine.this(), figures)

    def _measured(self, board: BulkBoard, settings: Settings, format_: Format) -> FormatFigures:
        now = self._clock.now_ms()
        with self._steps.step(f"Writing a {format_} file"):
            # A small one first: kernels are loaded, and the client knows its brokers.
            small = write_file(self._folder / "small", format_, ImportLoad(10_000, 100), now)
            file = write_file(self._folder / "file", format_, self._load, now)
        with self._steps.step(f"Importing {format_}") as step:
            self._import(board, settings, format_, small)
            began, cpu_began = time.perf_counter(), time.process_time()
            status = self._import(board, settings, format_, file)
            seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
            figures = FormatFigures(
                format_.value, file.stat().st_size, status.counts.samples, seconds, cpu_seconds, status.counts.bytes
            )
            step.note = f"{figures.samples_per_cpu_second:,.0f} samples a CPU-second"
        file.unlink()
        return figures

    def _import(self, board: BulkBoard, settings: Settings, format_: Format, file: Path) -> JobStatus:
        mapping: Mapping[str, Any] = _CSV if format_ is Format.CSV else {}
        plan = plan_import([str(file)], import_options(settings, format_, mapping, self._clock.now_ms()))
        job = add_job(settings, board, planned_import(plan), self._clock)
        worker(settings, board, self._clock).run_until_done(job.job)
        ended = board.job(job.job)
        status = JobStatus.of(ended, board.parts(ended))
        if status.state is not BulkJobState.DONE or status.counts.bad:
            raise NotImported(f"the import is {status.state}, with {status.counts.bad} bad records: {status.reason}")
        return status


def write_file(path: Path, format_: Format, load: ImportLoad, now: int) -> Path:
    """A file with the load's samples, scrape by scrape up to now."""
    header, line, footer = _LINES[format_]
    first = now - load.samples // load.series * _INTERVAL_MS
    with path.open("w", encoding="ascii") as file:
        file.write(header)
        for begin in range(0, load.samples, _LINES_AT_ONCE):
            rows = range(begin, min(load.samples, begin + _LINES_AT_ONCE))
            file.write(
                "".join(
                    line(row % load.series, first + row // load.series * _INTERVAL_MS, row * 7919 % 100_000 / 100)
                    for row in rows
                )
            )
        file.write(footer)
    return path


def _csv(series: int, at: int, value: float) -> str:
    return f"{at},host-{series},dc{series % 3},{value}\n"


def _openmetrics(series: int, at: int, value: float) -> str:
    return f'cpu_usage{{host="host-{series}",dc="dc{series % 3}"}} {value} {at / 1000:.3f}\n'


def _jsonl(series: int, at: int, value: float) -> str:
    labels = f'{{"__name__":"cpu_usage","host":"host-{series}","dc":"dc{series % 3}"}}'
    return f'{{"metric":{labels},"values":[{value}],"timestamps":[{at}]}}\n'


_LINES: dict[Format, tuple[str, Callable[[int, int, float], str], str]] = {
    Format.CSV: ("at,host,dc,usage\n", _csv, ""),
    Format.OPENMETRICS: ("# TYPE cpu_usage gauge\n", _openmetrics, "# EOF\n"),
    Format.JSONL: ("", _jsonl, ""),
}
