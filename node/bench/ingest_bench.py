"""`strandline bench ingest`: measures a real shard process between a real Kafka and a real Cassandra.

All records are in Kafka before the shard may read them, so that it never waits for the benchmark. First it reads one
scrape of new series, then the other scrapes, and then a record that closes the bucket, which is stored completely. A
bucket closes only when its time is over. So a run begins at the start of a bucket, whose length depends on the number
of samples, and the shard is suspended until the bucket's end.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from strandline.clock import SystemClock
from strandline.errors import Fatal
from strandline.node.bench.fleet import SERIES_A_RECORD, labels_of
from strandline.node.bench.ingest_report import IngestReport, Part, PeerFigures
from strandline.node.bench.machine import Machine
from strandline.node.bench.peer import Peer
from strandline.node.bench.scrapes import INTERVAL_MS, Scrapes
from strandline.node.bench.shard_process import ShardProcess
from strandline.node.own_command import Status
from strandline.node.settings.writing import write_settings
from strandline.node.stack import Stack, StackOptions
from strandline.node.steps import Steps

TOPIC = "bench"
_MINUTE = 60_000
_TIMEOUT_S = 1800
# An upper bound of a run's duration: the start, then producing and reading at this rate.
_START_MS, _SAMPLES_A_SECOND = 20_000, 200_000
_INTERVALS = tuple(minutes * _MINUTE for minutes in (1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 240, 480, 1440))


def interval_for(samples: int) -> int:
    """The shortest flush interval, in milliseconds, within which this number of samples is produced and read."""
    needed = _START_MS + 1000 * samples // _SAMPLES_A_SECOND
    return next((interval for interval in _INTERVALS if interval >= needed), _INTERVALS[-1])


class NotProduced(Fatal):
    """Kafka did not accept a record."""


class IngestBench:
    """One run, with its own servers in its own folder."""

    def __init__(self, series: int, scrapes: int, folder: Path, steps: Steps, peer: Peer | None) -> None:
        self._series, self._scrapes, self._folder, self._steps, self._peer = series, scrapes, folder, steps, peer
        self._clock = SystemClock()
        self._interval = interval_for(series * scrapes)
        self._buffer_bytes_a_sample = 0.0
        self._resident_bytes = 0

    def run(self) -> IngestReport:
        """Measure."""
        first_time = self._clock.now_ms() - (self._scrapes + 1) * INTERVAL_MS
        options = StackOptions(state_dir=self._folder / "stack", optimise=True)
        with self._steps.step("Starting Kafka and Cassandra"):
            stack = Stack.start(options)
        with stack:
            self._make_topic(stack)
            scrapes = Scrapes(self._series, first_time)
            new, steady, end = self._measure(stack, scrapes)
        return IngestReport(
            series=self._series,
            scrapes=self._scrapes,
            labels_a_series=len(labels_of(0)),
            samples_a_record=min(SERIES_A_RECORD, self._series),
            machine=Machine.this(),
            new_series=new,
            steady_state=steady,
            stored_bytes_a_sample=end["counters"]["stored_bytes"] / end["counters"]["stored_samples"],
            index_bytes_a_series=end["counters"]["index_bytes"] / end["keys"],
            resident_bytes=self._resident_bytes,
            resident_bytes_at_end=end["resident_bytes"],
            peak_resident_bytes=end["peak_resident_bytes"],
            buffer_bytes_a_sample=self._buffer_bytes_a_sample,
            peer=self._measure_peer(self._peer, first_time) if self._peer is not None else None,
        )

    def _measure(self, stack: Stack, scrapes: Scrapes) -> tuple[Part, Part, Status]:
        producer = Producer({"bootstrap.servers": stack.kafka_bootstrap, "acks": "all", "linger.ms": 5})
        process = ShardProcess(0, self._settings(stack), self._folder, self._clock)
        try:
            with self._steps.step("Starting a shard"):
                begun = process.wait_for("it is active", lambda one: one["phase"] == "active")
            with self._steps.step("Waiting for the next bucket to begin"):
                self._wait_for_next_bucket()
            with self._steps.step("New series") as step, process.suspended():
                self._produce(producer, scrapes.next())
            with self._steps.step("Reading new series") as step:
                went = time.perf_counter()
                known = process.wait_for("all series are known", self._has_read(1), _TIMEOUT_S)
                new = Part.between(begun, known, time.perf_counter() - went)
                step.note = f"{new.samples_per_second:,.0f} series/s"
            with self._steps.step("Producing the other scrapes") as step, process.suspended():
                for scrape in range(1, self._scrapes):
                    self._produce(producer, scrapes.next())
                    step.note = f"{scrape + 1} of {self._scrapes}"
            with self._steps.step("Reading them") as step:
                went = time.perf_counter()
                read = process.wait_for("all records are read", self._has_read(self._scrapes), _TIMEOUT_S)
                self._resident_bytes = read["resident_bytes"]
                self._buffer_bytes_a_sample = read["buffer"]["memory_bytes"] / max(1, read["buffer"]["samples"])
                reading_s = time.perf_counter() - went
            with self._steps.step("Waiting for the bucket to end"), process.suspended():
                self._wait_for_next_bucket()
                # Its record time is after the end of the bucket.
                self._produce(producer, iter([Scrapes(1, self._clock.now_ms()).next().__next__()]))
            with self._steps.step("Storing them") as step:
                went = time.perf_counter()
                stored = process.wait_for(
                    "all is stored",
                    lambda one: (
                        one["counters"]["stored_samples"] >= self._series * self._scrapes
                        and one["unstored_buckets"] == 0
                    ),
                    _TIMEOUT_S,
                )
                steady = Part.between(known, stored, reading_s + time.perf_counter() - went)
                step.note = f"{steady.samples_per_cpu_second:,.0f} samples a CPU-second"
            process.terminate()
            return new, steady, stored
        finally:
            process.kill()

    def _has_read(self, scrapes: int) -> Callable[[Status], bool]:
        return lambda one: one["counters"]["samples"] >= self._series * scrapes

    def _measure_peer(self, peer: Peer, first_time: int) -> PeerFigures:
        scrapes, figures = Scrapes(self._series, first_time), []
        for count in (1, self._scrapes - 1):
            with self._steps.step(f"Sending {count} scrapes to the peer"):
                before = peer.cpu_seconds()
                for _ in range(count):
                    peer.send(scrapes.next())
                figures.append(self._series * count / max(0.01, peer.cpu_seconds() - before))
        return PeerFigures(new_series=figures[0], steady_state=figures[1])

    def _wait_for_next_bucket(self) -> None:
        self._clock.sleep((self._interval - self._clock.now_ms() % self._interval) / 1000)

    def _produce(self, producer: Producer, bodies: Iterator[bytes]) -> None:
        failed: list[object] = []
        for body in bodies:
            while True:
                try:
                    producer.produce(
                        TOPIC,
                        value=body,
                        partition=0,
                        timestamp=self._clock.now_ms(),
                        on_delivery=lambda error, _: failed.append(error) if error is not None else None,
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
        if producer.flush(60) or failed:
            raise NotProduced(f"Kafka did not accept all records: {failed[:1] or 'no answer in 60 s'}")

    def _make_topic(self, stack: Stack) -> None:
        settings = {
            "message.timestamp.type": "CreateTime",
            "message.timestamp.after.max.ms": str(self._interval),
            "retention.ms": "-1",
            "max.message.bytes": str(16 << 20),
        }
        admin = AdminClient({"bootstrap.servers": stack.kafka_bootstrap})
        for made in admin.create_topics([NewTopic(TOPIC, 1, 1, config=settings)]).values():
            made.result(30)

    def _settings(self, stack: Stack) -> Path:
        return write_settings(
            self._folder / "settings.toml",
            {
                "kafka": {"bootstrap_servers": [stack.kafka_bootstrap]},
                "cassandra": {
                    "contact_points": [stack.cassandra_host],
                    "port": stack.cassandra_port,
                    "keyspace_copies": 1,
                },
                "dataset": {
                    "name": TOPIC,
                    "flush_interval": f"{self._interval // 1000}s",
                    "grace": "0s",
                    "retention": "2d",
                    "history": "2d",
                    "kafka_retention": "1d",
                },
                "shard": {
                    "data_dir": str(self._folder / "data"),
                    "flush_spread": 0,
                    "series_limit": 20_000_000,
                    "buffer_memory": "4g",
                },
            },
        )
