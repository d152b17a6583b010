"""`strandline bench import`: imports files to a real Kafka, with a worker in this process or on Spark, and measures the
shards that read the records.

Measures CPU time: that of this process while the worker runs, including Kafka's client, that of Spark's processes, and
that of the shards' processes until everything is stored. The same files are sent to VictoriaMetrics in the same run.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from strandline.clock import Clock, SystemClock, wait_until
from strandline.errors import Fatal
from strandline.jobs.board import BulkBoard
from strandline.jobs.importing.planning import plan_import
from strandline.jobs.importing.spec import Format
from strandline.jobs.running import PartRunner
from strandline.node.bench.import_files import ImportLoad, mapping_of, write_file
from strandline.node.bench.import_peer import SentFile, import_peer, send_file
from strandline.node.bench.import_report import FormatFigures, ImportBenchReport, PeerImport
from strandline.node.bench.machine import MIB, Machine
from strandline.node.bench.process_cpu import spark_cpu_seconds
from strandline.node.bench.query_servers import PEER_MISSING, Server
from strandline.node.bench.shard_process import ShardProcess
from strandline.node.bulk.adding import add_job
from strandline.node.bulk.importing import import_options, planned_import
from strandline.node.bulk.opening import worker
from strandline.node.bulk.reports import JobStatus
from strandline.node.own_command import OwnCommand
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

_DATASET = "bench"
_STORED_TIMEOUT_S = 3_600.0
_SMALL = ImportLoad(10_000, 100)
# Sent to the shards and the peer before the measurement, because a JVM compiles for a while after its start.
_WARM_UP = ImportLoad(200_000, 100_000)
# A file of about 1 MB.
_COMMAND_LOAD = ImportLoad(30_000, 300)


class NotImported(Fatal):
    """A job of the benchmark failed."""


@dataclass(frozen=True, slots=True)
class BenchParts:
    """What is measured in addition to the worker: shards that read the records, and a peer, which is started or at a
    URL. `on_spark`: the worker runs its parts on Spark, in a warm session.
    """

    shards: bool = True
    peer: bool = True
    peer_url: str | None = None
    on_spark: bool = False


class ImportBench:
    """One run, with its own servers in its own folder. Jobs are stored in a SQLite file."""

    def __init__(self, load: ImportLoad, folder: Path, steps: Steps, parts: BenchParts | None = None) -> None:
        self._load, self._folder, self._steps = load, folder, steps
        self._parts = parts or BenchParts()
        self._clock = SystemClock()
        self._landed = 0
        self._runner: PartRunner | None = None

    def run(self) -> ImportBenchReport:
        """Start the servers and measure."""
        options = StackOptions(state_dir=self._folder / "stack", optimise=True)
        servers = None if self._parts.shards else 1
        with self._steps.step("Starting Kafka and Cassandra" if self._parts.shards else "Starting Kafka"):
            stack = Stack.start(options, build=lambda *parts: kafka_and_cassandra(*parts)[:servers])
        with stack:
            return self.run_on(stack)

    def run_on(self, stack: Stack, dataset: str = _DATASET) -> ImportBenchReport:
        """Measure with running servers, in a topic that does not exist yet."""
        path = write_settings(self._folder / "import.toml", self._sections(stack, dataset))
        settings = load_settings(path, {})
        kafka = librdkafka_options(settings.kafka)
        create_topic(kafka, dataset, partitions=self._load.partitions, replication=1, retention_ms=None)
        with ExitStack() as opened:
            store = opened.enter_context(closing(open_sqlite_store(self._folder / "jobs.sqlite", self._clock)))
            board = BulkBoard(store, dataset, self._clock)
            shards = opened.enter_context(self._shards(path)) if self._parts.shards else []
            peer = opened.enter_context(self._peer()) if self._parts.peer else None
            if self._parts.on_spark:
                with self._steps.step("Starting Spark"):
                    self._runner = opened.enter_context(_spark_runner(settings, self._clock))
            self._warm_up(board, settings, shards, peer)
            figures = tuple(self._measure_format(board, settings, one, shards, peer) for one in self._load.formats)
            command_seconds = self._command(path) if self._parts.shards else None
        remark = PEER_MISSING if self._parts.peer and peer is None else ""
        return ImportBenchReport(self._load, Machine.this(), figures, command_seconds, remark)

    def _warm_up(
        self, board: BulkBoard, settings: Settings, shards: Sequence[ShardProcess], peer: Server | None
    ) -> None:
        if not shards and self._runner is None:
            return
        with self._steps.step("Warming up"):
            now, metric, format_ = self._clock.now_ms(), "warm_up_series", Format.CSV
            file = write_file(self._folder / "warm-up", format_, _WARM_UP, metric, now)
            samples = self._import(board, settings, format_, file, metric).counts.samples
            self._wait_until_stored(shards)
            if peer is not None:
                send_file(peer, SentFile(file, format_, metric), samples, self._clock)

    def _measure_format(
        self,
        board: BulkBoard,
        settings: Settings,
        format_: Format,
        shards: Sequence[ShardProcess],
        peer: Server | None,
    ) -> FormatFigures:
        now, metric = self._clock.now_ms(), f"bench_{format_.value}"
        with self._steps.step(f"Writing a {format_} file"):
            # A small file is imported first, to load the kernels and connect the client.
            small = write_file(self._folder / "small", format_, _SMALL, "warm_up", now)
            file = write_file(self._folder / "file", format_, self._load, metric, now)
        with self._steps.step(f"Importing {format_}") as step:
            self._import(board, settings, format_, small, "warm_up")
            self._wait_until_stored(shards)
            shards_began = _cpu_seconds(shards)
            began, cpu_began = time.perf_counter(), _worker_cpu_seconds()
            status = self._import(board, settings, format_, file, metric)
            seconds, cpu_seconds = time.perf_counter() - began, _worker_cpu_seconds() - cpu_began
            step.note = f"{status.counts.samples / cpu_seconds:,.0f} samples a CPU-second"
        shards_cpu_seconds = None
        if shards:
            with self._steps.step("Storing it") as step:
                self._wait_until_stored(shards)
                shards_cpu_seconds = _cpu_seconds(shards) - shards_began
                step.note = f"{status.counts.samples / (cpu_seconds + shards_cpu_seconds):,.0f} in all"
        sent: PeerImport | None = None
        if peer is not None:
            with self._steps.step(f"Sending it to {peer.name}") as step:
                sent = send_file(peer, SentFile(file, format_, metric), status.counts.samples, self._clock)
                if sent.cpu_seconds is not None:
                    step.note = f"{status.counts.samples / sent.cpu_seconds:,.0f} samples a CPU-second"
        counts, size = status.counts, file.stat().st_size
        file.unlink()
        return FormatFigures(
            format_.value, size, counts.samples, seconds, cpu_seconds, counts.bytes, shards_cpu_seconds, sent
        )

    def _import(self, board: BulkBoard, settings: Settings, format_: Format, file: Path, metric: str) -> JobStatus:
        options = import_options(settings, format_, mapping_of(format_, metric), self._clock.now_ms())
        job = add_job(settings, board, planned_import(plan_import([str(file)], options)), self._clock)
        worker(settings, board, self._clock, runner=self._runner).run_until_done(job.job)
        ended = board.job(job.job)
        status = JobStatus.of(ended, board.parts(ended))
        if status.state is not BulkJobState.DONE or status.counts.bad:
            raise NotImported(f"the import is {status.state}, with {status.counts.bad} bad records: {status.reason}")
        self._landed += status.counts.samples
        return status

    def _command(self, settings: Path) -> float:
        """The seconds that the command takes for a file of 1 MB, in its own process: the best of three runs, since the
        first one may have to read its modules from the disk.
        """
        with self._steps.step("Importing 1 MB by the command") as step:
            file = write_file(self._folder / "1mb.csv", Format.CSV, _COMMAND_LOAD, "command", self._clock.now_ms())
            mapping = self._folder / "mapping.toml"
            mapping.write_text(
                'metric = "command"\nvalue = "usage"\ntime = {column = "at", unit = "ms"}\nlabels = ["host", "dc"]\n'
            )
            arguments = ["job", "import", str(file), "--format", "csv", "--mapping", str(mapping)]
            taken = []
            for _ in range(3):
                began = time.perf_counter()
                command = OwnCommand([*arguments, "--config", str(settings)], self._folder / "command.log")
                if command.wait(120) != 0:
                    raise command.ended("failed")
                taken.append(time.perf_counter() - began)
            step.note = f"{file.stat().st_size / MIB:.1f} MiB in {min(taken):.2f} s"
        return min(taken)

    @contextmanager
    def _shards(self, settings: Path) -> Iterator[list[ShardProcess]]:
        """Start a process for each partition's shard, and wait until all are active."""
        with ExitStack() as opened, self._steps.step("Starting shards"):
            shards = []
            for number in range(self._load.partitions):
                shards.append(ShardProcess(number, settings, self._folder, self._clock))
                opened.callback(shards[-1].kill)
            for one in shards:
                one.wait_for("it is active", lambda status: status["phase"] == "active")
            kept = opened.pop_all()
        with kept:
            yield shards

    @contextmanager
    def _peer(self) -> Iterator[Server | None]:
        with import_peer(self._folder, self._parts.peer_url, self._clock) as peer:
            yield peer

    def _wait_until_stored(self, shards: Sequence[ShardProcess]) -> None:
        """Wait until the shards have stored all imported samples, which are all different."""

        def stored() -> int:
            return sum(int(one.status()["counters"]["stored_samples"]) for one in shards)

        if shards and not wait_until(
            lambda: stored() >= self._landed, timeout=_STORED_TIMEOUT_S, clock=self._clock, poll=0.2
        ):
            raise NotImported(
                f"shards stored {stored():,} of {self._landed:,} samples within {_STORED_TIMEOUT_S:.0f} s"
            )
        for one in shards:
            one.wait_for("all is stored", lambda status: status["unstored_buckets"] == 0, _STORED_TIMEOUT_S)

    def _sections(self, stack: Stack, dataset: str) -> dict[str, dict[str, object]]:
        found: dict[str, dict[str, object]] = {
            "kafka": {"bootstrap_servers": [stack.kafka_bootstrap]},
            # Buckets are short, so that samples are stored soon.
            "dataset": {
                "name": dataset,
                "flush_interval": "30s",
                "grace": "0s",
                "kafka_retention": "1d",
                "history": "0s",
            },
            "shard": {
                "data_dir": str(self._folder / "data"),
                "flush_spread": 0,
                "series_limit": 20_000_000,
                "buffer_memory": "2g",
            },
        }
        if self._parts.shards:
            found["cassandra"] = {
                "contact_points": [stack.cassandra_host],
                "port": stack.cassandra_port,
                "keyspace": "bench_import",
                "keyspace_copies": 1,
            }
        else:
            found["store"] = {"kind": "sqlite"}
        return found


@contextmanager
def _spark_runner(settings: Settings, clock: Clock) -> Iterator[PartRunner]:
    # Imported here because loading Spark's modules takes a second, and other benchmarks don't need them.
    from strandline.node.bulk.spark_running import spark_runner  # noqa: PLC0415

    with spark_runner(settings, clock) as runner:
        yield runner


def _worker_cpu_seconds() -> float:
    """The CPU time of the worker: of this process, and of Spark's processes."""
    return time.process_time() + spark_cpu_seconds()


def _cpu_seconds(shards: Sequence[ShardProcess]) -> float:
    return sum(float(one.status()["cpu_seconds"]) for one in shards)
