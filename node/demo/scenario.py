"""The demo's scenario: a gateway and a node with two shards are under load, and the node is killed and started again.
Every acknowledged sample must then be found exactly once. Afterwards some series are exported, and a file is imported.

Buckets are short, and replays always run on Spark, so that the scenario takes only minutes. The load continues while
the node is down: an agent does not notice it, since the gateway only needs Kafka.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any

from strandline.clock import Clock, wait_until
from strandline.node.bench.scrapes import INTERVAL_MS, Scrapes
from strandline.node.client.remote_read_client import read_samples
from strandline.node.demo.bulk import (
    HOSTS,
    LABEL,
    SAMPLES_A_HOST,
    VALUE,
    BulkCounts,
    exported_samples,
    strandline,
    write_file,
)
from strandline.node.demo.ledger import Ledger, Samples, compare
from strandline.node.demo.programs import Program, ProgramFailed, fetch_data
from strandline.node.demo.report import Chapter, DemoReport, RecoveredShard
from strandline.node.demo.sending import Sender
from strandline.node.settings.writing import write_settings
from strandline.node.stack.ports import LOOPBACK, free_ports
from strandline.node.stack.stack import Stack
from strandline.node.steps import Step, Steps
from strandline.spark.java_options import FAST_START, JAVA_OPTIONS
from strandline.time_range import TimeRange

PARTITIONS = 2
FLUSH_S = 15
_GRACE_S = 1
_SCRAPES_BEFORE, _SCRAPES_DOWN = 5, 6
# The scrapes after the first flush that the node reads before it is killed: some of them are only in its memory.
_SCRAPES_UNSTORED = 2
_CLUSTERS = 4
_DAY_MS = 86_400_000
_START_TIMEOUT_S, _FLUSH_TIMEOUT_S, _RECOVERY_TIMEOUT_S = 90, 120, 300
_SHARDS = "/api/v1/strandline/shards"


class ProofFailed(ProgramFailed):
    """The samples that were found are not the acknowledged ones."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of the node and the gateway, as host:port."""

    node: str
    gateway: str


@dataclass(frozen=True, slots=True)
class Load:
    """The number of series, and the seconds of a bucket."""

    series: int
    flush_s: int = FLUSH_S


class Scenario:
    """One run on a running stack, with its own folder. Leaving the `with` block ends the processes that it started."""

    def __init__(self, stack: Stack, folder: Path, load: Load, *, clock: Clock, environ: Mapping[str, str]) -> None:
        self._folder, self._series, self._flush_s = folder, load.series, load.flush_s
        self._clock, self._environ = clock, environ
        node, gateway = free_ports(2)
        self.addresses = Addresses(f"{LOOPBACK}:{node}", f"{LOOPBACK}:{gateway}")
        self.settings = _write_settings(folder, stack, self.addresses, load.flush_s)
        self._running = ExitStack()
        self._steps: Steps
        self._chapters: list[Chapter] = []
        scrapes = _SCRAPES_BEFORE + _SCRAPES_UNSTORED + _SCRAPES_DOWN
        self._first_time = clock.now_ms() - scrapes * INTERVAL_MS

    def __enter__(self) -> "Scenario":
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def run(self, steps: Steps) -> DemoReport:
        """Run all steps once. Raises `ProofFailed`, `ProgramFailed` or `CommandEnded`."""
        self._steps, ledger = steps, Ledger()
        scrapes = _each_scrape(Scrapes(self._series, self._first_time))
        self._chapter("Starting the gateway", self._start_gateway)
        node = self._chapter("Starting the node with two shards", self._start_node)
        with closing(Sender(self.addresses.gateway, ledger, self._clock)) as sender:

            def send(count: int) -> Callable[[Step], None]:
                bodies = chain.from_iterable(islice(scrapes, count))
                return lambda step: sender.send(bodies, step)

            self._chapter(f"Writing {self._series:,} series", send(_SCRAPES_BEFORE))
            self._chapter("Storing the first buckets", self._wait_for_flush)
            self._chapter("Writing more", send(_SCRAPES_UNSTORED))
            self._chapter("kill -9 of the node", lambda _: node.kill())
            self._chapter("Writing while the node is down", send(_SCRAPES_DOWN))
        self._chapter("Waiting for the end of the bucket", self._wait_for_bucket_end)
        recovered = self._chapter("Recovery: index, Spark replay, tail", self._start_again)
        verified = self._chapter("Verifying what is stored", self._verify)
        comparison = self._chapter("Reading every sample back", lambda step: self._prove(ledger, step))
        # The export comes first: the recovered samples are stored, while imported ones are stored by the next flush.
        exported = self._chapter("Exporting a quarter of the series to Parquet", self._export)
        imported = self._chapter("Importing a CSV file", self._import)
        bulk = BulkCounts(HOSTS * SAMPLES_A_HOST, imported, exported)
        return DemoReport(self._series, comparison, verified, tuple(self._chapters), recovered, bulk)

    def _chapter(self, name: str, work: Callable[[Step], Any]) -> Any:
        began = self._clock.monotonic()
        with self._steps.step(name) as step:
            result = work(step)
        self._chapters.append(Chapter(name, self._clock.monotonic() - began))
        return result

    def _start_gateway(self, step: Step) -> None:
        arguments = ["gateway", "--config", str(self.settings), "--create-topic", str(PARTITIONS)]
        gateway = Program(arguments, self._folder / "gateway.log", environ=self._environ)
        self._running.callback(gateway.end)
        gateway.wait_for_answer(self.addresses.gateway, "/-/ready", self._clock, timeout=_START_TIMEOUT_S)
        step.note = f"http://{self.addresses.gateway}/api/v1/write"

    def _start_node(self, step: Step) -> Program:
        node = self._node()
        node.wait_for_answer(self.addresses.node, "/-/ready", self._clock, timeout=_START_TIMEOUT_S)
        step.note = f"http://{self.addresses.node}/"
        return node

    def _node(self) -> Program:
        node = Program(["node", "--config", str(self.settings)], self._folder / "node.log", environ=self._environ)
        self._running.callback(node.end)
        return node

    def _wait_for_flush(self, step: Step) -> None:
        """Wait until everything that was sent so far is stored."""
        sent: dict[int, int] = {}

        def flushed() -> bool:
            shards = self._shards()
            if not sent and all(one["lag"] == 0 and one["position"] for one in shards):
                sent.update({one["shard"]: one["position"] for one in shards})
            step.note = ", ".join(f"shard {one['shard']} up to offset {one['checkpoint']}" for one in shards)
            return bool(sent) and all(one["checkpoint"] >= sent[one["shard"]] for one in shards)

        self._wait(flushed, "every shard has stored what was sent", _FLUSH_TIMEOUT_S)

    def _wait_for_bucket_end(self, step: Step) -> None:
        """Wait so that all missed records are in complete buckets, which workers replay on Spark."""
        bucket_ms = 1000 * self._flush_s
        end = (self._clock.now_ms() // bucket_ms + 1) * bucket_ms + 1000 * _GRACE_S
        step.note = f"buckets of {self._flush_s} s"
        while (now := self._clock.now_ms()) < end:
            self._clock.sleep((end - now) / 1000)

    def _start_again(self, step: Step) -> tuple[RecoveredShard, ...]:
        node = self._node()
        node.wait_for_answer(self.addresses.node, "/-/healthy", self._clock, timeout=_START_TIMEOUT_S)
        jobs: Counter[int] = Counter()

        def recovered() -> bool:
            node.check()
            shards = self._shards()
            for one in shards:
                jobs[one["shard"]] = max(jobs[one["shard"]], sum(one["replay_jobs"].values()))
            step.note = ", ".join(f"shard {one['shard']} {_progress(one)}" for one in shards)
            fractions = [1.0 if one["active"] else (one["progress"] or 0.0) for one in shards]
            step.fraction = sum(fractions) / len(fractions) if fractions else None
            return bool(shards) and all(one["active"] for one in shards)

        self._wait(recovered, "every shard is active again", _RECOVERY_TIMEOUT_S)
        step.fraction = None
        if not all(jobs[shard] for shard in range(PARTITIONS)):
            raise ProofFailed(f"Spark should have replayed the missed records of each shard; its jobs: {dict(jobs)}")
        return tuple(RecoveredShard(one["shard"], one["start_s"], jobs[one["shard"]]) for one in self._shards())

    def _verify(self, step: Step) -> int:
        strandline(["recover", "verify"], self.settings, self._environ)
        step.note = "manifest, segments, index buckets, bitmaps and Lucene agree"
        return PARTITIONS

    def _prove(self, ledger: Ledger, step: Step) -> Any:
        times, parts = TimeRange(0, self._clock.now_ms() + INTERVAL_MS), []
        for cluster in range(_CLUSTERS):
            parts.append(Samples.of(read_samples(self.addresses.node, "cluster", f"cluster-{cluster}", times)))
            step.fraction = (cluster + 1) / _CLUSTERS
        comparison = compare(ledger.samples(), Samples.concatenate(parts))
        step.fraction, step.note = None, f"{comparison.found:,} samples, {comparison.lost} lost"
        if not comparison.is_exact:
            raise ProofFailed(
                f"of {comparison.acknowledged:,} acknowledged samples {comparison.lost:,} are lost, "
                f"{comparison.doubled:,} doubled, {comparison.wrong:,} wrong; {comparison.foreign:,} were never sent",
                remedy="This is a bug: please report it",
            )
        return comparison

    def _import(self, step: Step) -> int:
        """Import a small file, and wait until its samples are found. Returns their number."""
        data, mapping = write_file(self._folder, self._clock.now_ms())
        arguments = ["job", "import", str(data), "--format", "csv", "--mapping", str(mapping)]
        strandline(arguments, self.settings, self._environ)
        wanted, found = HOSTS * SAMPLES_A_HOST, 0
        times = TimeRange(0, self._clock.now_ms() + INTERVAL_MS)

        def is_found() -> bool:
            nonlocal found
            found = len(Samples.of(read_samples(self.addresses.node, LABEL, VALUE, times)))
            step.note = f"{found:,} of {wanted:,} samples found again"
            return found >= wanted

        self._wait(is_found, "all samples of the file are found", _FLUSH_TIMEOUT_S)
        if found != wanted:
            raise ProofFailed(f"the file has {wanted:,} samples, and {found:,} are found")
        return found

    def _export(self, step: Step) -> int:
        """Export the samples of one cluster, and compare their number with that of a query."""
        self._wait_for_flush(step)
        times = TimeRange(0, self._clock.now_ms() + INTERVAL_MS)
        wanted = len(Samples.of(read_samples(self.addresses.node, "cluster", "cluster-0", times)))
        folder, day = self._folder / "export", "%Y-%m-%d"
        first, last = (
            datetime.fromtimestamp(time / 1000, UTC) for time in (self._first_time, self._clock.now_ms() + _DAY_MS)
        )
        arguments = ["job", "export", '{cluster="cluster-0"}', "--to", str(folder), "--not-ready"]
        arguments += ["--start", first.strftime(day), "--end", last.strftime(day)]
        strandline(arguments, self.settings, self._environ)
        exported = exported_samples(folder)
        step.note = f"{exported:,} samples"
        if exported != wanted:
            raise ProofFailed(f"cluster-0 has {wanted:,} samples, and {exported:,} were exported")
        return exported

    def _shards(self) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = fetch_data(self.addresses.node, _SHARDS)["shards"]
        return found

    def _wait(self, condition: Callable[[], bool], what: str, timeout: float) -> None:
        if not wait_until(condition, timeout=timeout, clock=self._clock, poll=0.25):
            raise ProgramFailed(f"it took more than {timeout} s until {what}", remedy=f"See the logs in {self._folder}")


def _progress(shard: Mapping[str, Any]) -> str:
    phase = shard["phase"] or shard["process"]
    return f"{phase} {shard['progress']:.0%}" if shard["progress"] is not None else str(phase)


def _each_scrape(scrapes: Scrapes) -> Iterator[Iterator[bytes]]:
    while True:
        yield scrapes.next()


def _write_settings(folder: Path, stack: Stack, addresses: Addresses, flush_s: int) -> Path:
    """Write the settings file for the demo's gateway and node."""
    return write_settings(
        folder / "strandline.toml",
        {
            "dataset": {
                "name": "demo",
                "flush_interval": f"{flush_s}s",
                "grace": f"{_GRACE_S}s",
                "retention": "2h",
                "stale_after": "1h",
                "kafka_retention": "2h",
                "history": "0s",
            },
            "shard": {"data_dir": str(folder / "data"), "flush_spread": 0.2},
            "replay": {"mode": "spark", "worker_idle": "5s"},
            "spark.properties": {f'"{JAVA_OPTIONS}"': FAST_START},
            "http": {"node_address": addresses.node, "gateway_address": addresses.gateway},
            "kafka": {"bootstrap_servers": [stack.kafka_bootstrap]},
            "cassandra": {
                "contact_points": [f"{stack.cassandra_host}:{stack.cassandra_port}"],
                "keyspace_copies": 1,
            },
        },
    )
