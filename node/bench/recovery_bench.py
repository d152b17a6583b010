"""`strandline bench recovery`: measures how long a real shard's process takes until it is ACTIVE again.

There are two parts. *Index*: everything is stored and no records were missed, so a start only loads the index, from its
local copy or from Cassandra. *Lag*: records were missed while no shard ran, and are replayed by the shard or on Spark.
Buckets are short, and a start waits for the end of the last record's bucket. So all missed records are in complete
buckets, and none in the tail, which the shard always reads itself.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from strandline.clock import Clock, SystemClock
from strandline.errors import Fatal
from strandline.node.bench.fleet import SERIES_A_RECORD, labels_of
from strandline.node.bench.machine import MIB, Machine
from strandline.node.bench.process_memory import descendants_bytes, peak_resident_bytes
from strandline.node.bench.recovery_report import (
    IndexStart,
    LagStart,
    LocalCopy,
    Reader,
    RecoveryReport,
    Start,
    WarmReplay,
)
from strandline.node.bench.replay_bench import fill_partition, measure, sampler_of
from strandline.node.bench.scrapes import INTERVAL_MS, Scrapes
from strandline.node.bench.shard_process import ShardProcess
from strandline.node.own_command import Status
from strandline.node.replay.openers import store_opener
from strandline.node.replay.spark_worker import replay_settings, worker_context
from strandline.node.settings.clients import java_kafka_options, spark_properties
from strandline.node.settings.load import load_settings
from strandline.node.settings.writing import write_settings
from strandline.node.shard.kafka_topics import create_topic
from strandline.node.stack import Stack, StackOptions
from strandline.node.steps import Step, Steps
from strandline.recovery.plan_id import new_plan_id
from strandline.recovery.replay.runner import JobRunner
from strandline.setup.installation import Installation
from strandline.spark.replay import KafkaTopic, ReplayEndpoints, SparkRunner
from strandline.spark.session import spark_session
from strandline.store.jobs import Job, JobState
from strandline.store.rows import ShardId

# Smaller loads are measured once, and not in three sizes: fractions of them would not be meaningful.
MIN_SERIES_TO_SPLIT, MIN_LAG_TO_SPLIT = 100_000, 1_000
MAX_LAG_SERIES = 100_000
_KEPT_MS = 2 * 3_600_000
_TIMEOUT_S = 1800
_MEMORY_POLL_S = 1.0
# The log text of a shard without a local copy.
_LOADS = "loading the index from the store"


class WrongStart(Fatal):
    """A start was not of the intended kind, so its time is meaningless."""


@dataclass(frozen=True, slots=True)
class RecoveryOptions:
    """What is measured: the maximum number of series, and the maximum number of missed records."""

    series: int
    lag: int
    index_part: bool = True
    lag_part: bool = True
    readers: tuple[Reader, ...] = ("direct", "spark")
    flush_interval_s: int = 20

    def series_steps(self) -> tuple[int, ...]:
        """The numbers of series in the index part."""
        if self.series < MIN_SERIES_TO_SPLIT:
            return (self.series,)
        return self.series // 10, self.series // 3, self.series

    def lag_steps(self) -> tuple[int, ...]:
        """The numbers of missed records in the lag part."""
        if self.lag < MIN_LAG_TO_SPLIT:
            return (self.lag,)
        return self.lag // 4, self.lag // 2, self.lag

    @property
    def lag_series(self) -> int:
        """The number of series in the lag part. It is chosen so that all records have the same size."""
        series = min(self.series, MAX_LAG_SERIES)
        return series if series < SERIES_A_RECORD else series // SERIES_A_RECORD * SERIES_A_RECORD

    @property
    def samples_a_record(self) -> int:
        """The samples of a record in the lag part."""
        return min(SERIES_A_RECORD, self.lag_series)


class Deployment:
    """A topic with one partition on a stack, its shard, and its folder."""

    def __init__(self, stack: Stack, folder: Path, name: str, flush_interval_s: int, clock: Clock) -> None:
        self.name, self.end = name, 0
        self._stack, self._folder, self._clock = stack, folder, clock
        self._flush_interval_s = flush_interval_s
        self._folder.mkdir(parents=True)
        create_topic(
            {"bootstrap.servers": stack.kafka_bootstrap}, name, partitions=1, replication=1, retention_ms=_KEPT_MS
        )

    def produce(self, bodies: Iterator[bytes]) -> None:
        """Produce records with the current time as record time."""
        now = self._clock.now_ms()
        self.end += fill_partition(self._stack.kafka_bootstrap, self.name, 0, bodies, now)

    def wait_for_bucket_end(self) -> None:
        """Wait for the end of the bucket with the last record."""
        interval = 1000 * self._flush_interval_s
        end = (self._clock.now_ms() // interval + 1) * interval
        while (now := self._clock.now_ms()) < end:
            self._clock.sleep((end - now) / 1000)

    def delete_local_copy(self) -> None:
        """Delete the data folder, as if the disk was new."""
        shutil.rmtree(self._folder / "data")

    @contextmanager
    def started(self, reader: Reader) -> Iterator["StartedShard"]:
        """Start the shard's process. It is terminated at the end of the block, or killed after an error."""
        settings, spawned = self.settings(reader), self._clock.now_ms()
        process = ShardProcess(0, settings, self._folder, self._clock)
        try:
            yield StartedShard(process, spawned, self._clock)
            process.terminate()
        finally:
            process.kill()

    def settings(self, reader: Reader) -> Path:
        """Write the settings file, and return its path."""
        return write_settings(
            self._folder / "settings.toml",
            {
                "kafka": {"bootstrap_servers": [self._stack.kafka_bootstrap]},
                "cassandra": {
                    "contact_points": [self._stack.cassandra_host],
                    "port": self._stack.cassandra_port,
                    "keyspace_copies": 1,
                },
                "dataset": {
                    "name": self.name,
                    "flush_interval": f"{self._flush_interval_s}s",
                    "grace": "0s",
                    "retention": "2h",
                    # Keys have no samples between two starts, and must not end.
                    "stale_after": "2h",
                    "history": "0s",
                },
                "shard": {
                    "data_dir": str(self._folder / "data"),
                    "flush_spread": 0,
                    "series_limit": 20_000_000,
                    # The shard becomes ACTIVE only when everything is read.
                    "active_lag": 1,
                },
                "spark": {"master": "local[2]"},
                "replay": {"mode": reader, "worker_idle": "1s"},
            },
        )


class StartedShard:
    """A shard's process whose start is measured."""

    def __init__(self, process: ShardProcess, spawned: int, clock: Clock) -> None:
        self._process, self._spawned, self._clock = process, spawned, clock
        self._loads_before = process.log_text().count(_LOADS)
        self._looked = clock.monotonic()
        self.workers_peak_bytes = 0

    @property
    def has_loaded_from_store(self) -> bool:
        """Whether it loaded the index from the store instead of a local copy."""
        return self._process.log_text().count(_LOADS) > self._loads_before

    def wait_until_active(self, step: Step) -> Start:
        """Wait until it is active, and return the measurements. The step shows the progress."""

        def is_active(status: Status) -> bool:
            step.note, step.fraction = status["phase"], status["fraction"]
            self._sample_worker_memory()
            return bool(status["phase"] == "active")

        status = self._process.wait_for("it is active", is_active, _TIMEOUT_S)
        start = Start.of(
            self._spawned,
            status["entered"],
            cpu_seconds=status["cpu_seconds"],
            peak_resident_bytes=peak_resident_bytes(self._process.pid),
        )
        step.note, step.fraction = f"{start.seconds:.1f} s, {start.peak_resident_bytes / MIB:,.0f} MB", None
        return start

    def wait_for(self, what: str, condition: Callable[[Status], bool]) -> float:
        """The seconds from its start until a condition held, with a resolution of half a second."""
        status = self._process.wait_for(what, condition, _TIMEOUT_S)
        return float(status["written_at"] - self._spawned) / 1000

    def check_keys(self, series: int) -> None:
        """Raises `WrongStart` unless it knows all series: a start that lost some would be too quick."""
        known = self._process.status().get("keys")
        if known != series:
            raise WrongStart(f"the shard knows {known} of {series} series after its start")

    def _sample_worker_memory(self) -> None:
        if self._clock.monotonic() - self._looked >= _MEMORY_POLL_S:
            self._looked = self._clock.monotonic()
            self.workers_peak_bytes = max(self.workers_peak_bytes, descendants_bytes(self._process.pid))


class RecoveryBench:
    """One run, in its own folder."""

    def __init__(self, options: RecoveryOptions, folder: Path, steps: Steps) -> None:
        self._options, self._folder, self._steps = options, folder, steps
        self._clock = SystemClock()

    def run(self) -> RecoveryReport:
        """Measure with its own servers."""
        with self._steps.step("Starting Kafka and Cassandra"):
            stack = Stack.start(StackOptions(state_dir=self._folder / "stack", optimise=True))
        with stack:
            return self.run_on(stack)

    def run_on(self, stack: Stack, prefix: str = "bench") -> RecoveryReport:
        """Measure with these servers. The names of topics and datasets begin with `prefix`."""
        options = self._options
        index = self._index_starts(stack, prefix) if options.index_part else []
        lag, warm = self._lag_starts(stack, f"{prefix}-lag") if options.lag_part else ([], [])
        return RecoveryReport(
            machine=Machine.this(),
            labels_a_series=len(labels_of(0)),
            samples_a_record=options.samples_a_record,
            lag_series=options.lag_series,
            index_starts=tuple(index),
            lag_starts=tuple(lag),
            warm_replays=tuple(warm),
        )

    def _index_starts(self, stack: Stack, prefix: str) -> list[IndexStart]:
        found = []
        for series in self._options.series_steps():
            deployment = self._deployment(stack, f"{prefix}-index-{series}")
            self._store_series(deployment, Scrapes(series, self._clock.now_ms() - INTERVAL_MS).next(), series)
            found.append(self._index_start(deployment, series, "warm"))
            deployment.delete_local_copy()
            found.append(self._index_start(deployment, series, "cold"))
        return found

    def _index_start(self, deployment: Deployment, series: int, copy: LocalCopy) -> IndexStart:
        with (
            self._steps.step(f"Starting with {series:,} series, {copy}") as step,
            deployment.started("direct") as shard,
        ):
            start = shard.wait_until_active(step)
            shard.check_keys(series)
            if shard.has_loaded_from_store != (copy == "cold"):
                raise WrongStart(f"the start with {series} series was not {copy}, as intended")
        return IndexStart(series, copy, start)

    def _lag_starts(self, stack: Stack, name: str) -> tuple[list[LagStart], list[WarmReplay]]:
        options = self._options
        series, lags = options.lag_series, options.lag_steps()
        deployment = self._deployment(stack, name)
        records = -(-series // SERIES_A_RECORD)
        scrapes = 2 + len(options.readers) * sum(lags) // records
        bodies = _scrape_after_scrape(Scrapes(series, self._clock.now_ms() - scrapes * INTERVAL_MS))
        self._store_series(deployment, islice(bodies, records), series)
        found = []
        for reader in options.readers:
            for lag in lags:
                with self._steps.step(f"Producing {lag:,} records while no shard runs"):
                    deployment.produce(islice(bodies, lag))
                    deployment.wait_for_bucket_end()
                found.append(self._lag_start(deployment, reader, lag))
        return found, self._warm_replays(deployment, lags) if "spark" in options.readers else []

    def _lag_start(self, deployment: Deployment, reader: Reader, lag: int) -> LagStart:
        samples = lag * self._options.samples_a_record
        with (
            self._steps.step(f"Starting {lag:,} records behind, {reader}") as step,
            deployment.started(reader) as shard,
        ):
            start = shard.wait_until_active(step)
            stored = shard.wait_for("all is stored", lambda one: one["checkpoint"] >= deployment.end)
            shard.check_keys(self._options.lag_series)
        # After a replay by workers, ACTIVE means that everything is stored, and its time is known to the millisecond.
        stored = start.seconds if reader == "spark" else stored
        return LagStart(reader, lag, samples, start, stored, shard.workers_peak_bytes)

    def _warm_replays(self, deployment: Deployment, lags: tuple[int, ...]) -> list[WarmReplay]:
        found = []
        with (
            self._steps.step("Replaying in one Spark session") as step,
            self._runner(deployment) as runner,
        ):
            for lag in (lags[-1], *lags):
                figures = measure(runner, [self._job(deployment, lag)])
                found.append(WarmReplay(figures.records, figures.samples, figures.seconds))
                step.note = f"{found[-1].samples_per_second:,.0f} samples/s"
        # The first one has warmed the session up.
        return found[1:]

    @contextmanager
    def _runner(self, deployment: Deployment) -> Iterator[JobRunner]:
        """A job runner as in a worker, but in this process."""
        settings, installed = load_settings(deployment.settings("spark"), {}), Installation.load()
        servers, topic = ",".join(settings.kafka.bootstrap_servers), deployment.name
        with (
            worker_context(settings, {}, self._clock) as place,
            closing(sampler_of(servers, topic)) as sampler,
            spark_session(
                "strandline bench recovery",
                spark_properties(settings.spark),
                jars=installed.spark_jars,
                java_home=installed.java_home,
            ) as session,
        ):
            places = ReplayEndpoints(
                KafkaTopic(servers, topic, java_kafka_options(settings.kafka)),
                sampler,
                place.store,
                store_opener(settings, place.folder),
            )
            yield SparkRunner(session, places, replay_settings(place), self._clock)

    def _job(self, deployment: Deployment, records: int) -> Job:
        """A job that replays the newest records again. It writes under an attempt that no row references."""
        now = self._clock.now_ms()
        return Job(
            ShardId(deployment.name, 0),
            bucket=now // (1000 * self._options.flush_interval_s),
            plan=new_plan_id(now),
            start=deployment.end - records,
            end=deployment.end,
            groups=frozenset(range(_groups(deployment))),
            wants_keys=True,
            life=_KEPT_MS,
            state=JobState.LEASED,
            epoch=1,
        )

    def _deployment(self, stack: Stack, name: str) -> Deployment:
        return Deployment(stack, self._folder / name, name, self._options.flush_interval_s, self._clock)

    def _store_series(self, deployment: Deployment, bodies: Iterator[bytes], series: int) -> None:
        """Produce one sample of each series, and let a shard store them, with an index bucket and a local copy."""
        with self._steps.step(f"Storing {series:,} series"):
            deployment.produce(bodies)
            with deployment.started("direct") as shard:
                shard.wait_for(
                    "all is stored",
                    lambda one: one["checkpoint"] >= deployment.end and one.get("unstored_buckets") == 0,
                )


def _scrape_after_scrape(scrapes: Scrapes) -> Iterator[bytes]:
    while True:
        yield from scrapes.next()


def _groups(deployment: Deployment) -> int:
    return load_settings(deployment.settings("spark"), {}).dataset.groups
