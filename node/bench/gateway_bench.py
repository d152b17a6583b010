"""`strandline bench gateway`: measures a real gateway process between HTTP clients and a real Kafka.

The clients are threads of the benchmark's process, so their CPU time is not counted. All requests are generated before
the first one is sent: scrapes of the generated fleet, with ten labels per series.
"""

import http.client
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from urllib.parse import urlsplit

from strandline.clock import SystemClock
from strandline.errors import Fatal
from strandline.node.bench.fleet import SERIES_A_RECORD, labels_of
from strandline.node.bench.gateway_process import GatewayProcess
from strandline.node.bench.machine import Machine
from strandline.node.bench.scrapes import INTERVAL_MS, Scrapes
from strandline.node.output import Block, Table
from strandline.node.own_command import Status
from strandline.node.settings.writing import write_settings
from strandline.node.stack import Stack, StackOptions
from strandline.node.stack.stack import kafka_and_cassandra
from strandline.node.steps import Steps
from strandline.wire.snappy import compress, decompress

HEADERS = {
    "Content-Encoding": "snappy",
    "Content-Type": "application/x-protobuf",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}
_WARM_UP = 100
_DISTINCT = 200
_TIMEOUT_S = 600
_FLEET = 50
"""The number of requests in one scrape of the fleet."""


class NotWritten(Fatal):
    """The gateway did not accept a request."""


@dataclass(frozen=True, slots=True)
class GatewayLoad:
    """The load: the requests, the series in each, the connections, and the partitions of the topic."""

    requests: int
    series: int = SERIES_A_RECORD
    connections: int = 4
    partitions: int = 4


@dataclass(frozen=True, slots=True)
class GatewayReport:
    """The results of one run. CPU seconds are those of the gateway's process with all of its threads."""

    load: GatewayLoad
    labels_a_series: int
    machine: Machine
    samples: int
    seconds: float
    cpu_seconds: float
    stages: Mapping[str, float]
    bytes_in: int
    bytes_out: int
    p50_ms: float
    p99_ms: float

    @property
    def samples_per_cpu_second(self) -> float:
        return self.samples / self.cpu_seconds

    def blocks(self) -> Iterator[Block]:
        """The results as tables."""
        load = self.load
        yield (
            f"{load.requests:,} requests of {load.series:,} series with {self.labels_a_series} labels,"
            f" {load.connections} connections, {load.partitions} partitions"
        )
        yield str(self.machine)
        yield ""
        yield (
            f"{self.samples_per_cpu_second:,.0f} samples a CPU-second, {self.samples / self.seconds:,.0f} samples/s,"
            f" answered in {self.p50_ms:.1f} ms (p50), {self.p99_ms:.1f} ms (p99)"
        )
        yield (
            f"{self.bytes_in / self.samples:.1f} bytes a sample as sent, {self.bytes_out / self.samples:.1f} in Kafka"
        )
        yield ""
        yield Table(("stage", "CPU s", "ns a sample", "ms a request", "share"), tuple(self._rows()))

    def _rows(self) -> Iterator[tuple[str, ...]]:
        rest = self.cpu_seconds - sum(self.stages.values())
        for stage, spent in (
            *self.stages.items(),
            ("other: HTTP, Kafka's client", rest),
            ("all", self.cpu_seconds),
        ):
            yield (
                stage,
                f"{spent:.2f}",
                f"{1e9 * spent / self.samples:,.0f}",
                f"{1e3 * spent / self.load.requests:.2f}",
                f"{spent / self.cpu_seconds:.0%}",
            )


class GatewayBench:
    """One run, with its own Kafka in its own folder."""

    def __init__(self, load: GatewayLoad, folder: Path, steps: Steps) -> None:
        self._load, self._folder, self._steps = load, folder, steps
        self._clock = SystemClock()

    def run(self) -> GatewayReport:
        """Start Kafka and measure."""
        options = StackOptions(state_dir=self._folder / "stack", optimise=True)
        with self._steps.step("Starting Kafka"):
            stack = Stack.start(options, build=lambda *parts: kafka_and_cassandra(*parts)[:1])
        with stack:
            return self.run_on(stack, topic="bench")

    def run_on(self, stack: Stack, *, topic: str) -> GatewayReport:
        """Measure with a running Kafka, in a topic that does not exist yet."""
        load = self._load
        with self._steps.step("Making requests"):
            bodies = request_bodies(load, self._clock.now_ms())
        settings = write_settings(
            self._folder / "gateway.toml",
            {
                "kafka": {"bootstrap_servers": [stack.kafka_bootstrap]},
                "dataset": {"name": topic, "kafka_retention": "1h"},
                "http": {"gateway_address": "127.0.0.1:0"},
            },
        )
        process = GatewayProcess(settings, self._folder, self._clock, extra=("--create-topic", str(load.partitions)))
        try:
            with self._steps.step("Starting a gateway"):
                url = f"{process.listening()}/api/v1/write"
            with self._steps.step("Warming up"):
                send_all(url, list(islice(cycle(bodies), _WARM_UP)), load.connections)
                before = process.wait_for("it has answered", _has_written(_WARM_UP * load.series), _TIMEOUT_S)
            with self._steps.step("Writing") as step:
                began = time.perf_counter()
                times = send_all(url, list(islice(cycle(bodies), load.requests)), load.connections)
                seconds = time.perf_counter() - began
                wanted = (_WARM_UP + load.requests) * load.series
                after = process.wait_for("it has answered", _has_written(wanted), _TIMEOUT_S)
                report = self._report(before, after, seconds, times)
                step.note = f"{report.samples_per_cpu_second:,.0f} samples a CPU-second"
            process.terminate()
        finally:
            process.kill()
        return report

    def _report(self, before: Status, after: Status, seconds: float, times: Sequence[float]) -> GatewayReport:
        old, new = before["figures"], after["figures"]
        ordered = sorted(times)
        return GatewayReport(
            load=self._load,
            labels_a_series=len(labels_of(0)),
            machine=Machine.this(),
            samples=new["samples"] - old["samples"],
            seconds=seconds,
            cpu_seconds=after["cpu_seconds"] - before["cpu_seconds"],
            stages={stage: spent - old["stages"][stage] for stage, spent in new["stages"].items()},
            bytes_in=new["bytes_in"] - old["bytes_in"],
            bytes_out=new["bytes_out"] - old["bytes_out"],
            p50_ms=1000 * ordered[len(ordered) // 2],
            p99_ms=1000 * ordered[len(ordered) * 99 // 100],
        )


def request_bodies(load: GatewayLoad, now_ms: int) -> list[bytes]:
    """The distinct requests, which are sent repeatedly."""
    distinct = min(_DISTINCT, load.requests)
    # A scrape consists of bodies of a fixed size, or of one smaller body.
    whole, rest = divmod(load.series, SERIES_A_RECORD)
    fleet = load.series * _FLEET if not rest else load.series
    joined = whole + bool(rest)
    scrapes = Scrapes(fleet, now_ms - distinct * INTERVAL_MS)
    bodies: list[bytes] = []
    while len(bodies) < distinct:
        parts = list(scrapes.next())
        bodies += [_merged(parts[at : at + joined]) for at in range(0, len(parts), joined)]
    return bodies[:distinct]


def send_all(url: str, bodies: Sequence[bytes], connections: int) -> list[float]:
    """Send requests over several connections. Returns the seconds of each. Raises `NotWritten`."""
    with ThreadPoolExecutor(connections) as threads:
        shares = [threads.submit(_send, url, bodies[first::connections]) for first in range(connections)]
        return [took for share in shares for took in share.result()]


def _send(url: str, bodies: Sequence[bytes]) -> list[float]:
    where, times = urlsplit(url), []
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
    try:
        for body in bodies:
            began = time.perf_counter()
            connection.request("POST", where.path, body, HEADERS)
            answer = connection.getresponse()
            text = answer.read()
            times.append(time.perf_counter() - began)
            if answer.status != http.HTTPStatus.NO_CONTENT:
                raise NotWritten(f"{url} answered {answer.status}: {text[:300].decode(errors='replace').strip()}")
    except (OSError, http.client.HTTPException) as error:
        raise NotWritten(f"{url} does not answer: {error!r}") from error
    finally:
        connection.close()
    return times


def _merged(bodies: Sequence[bytes]) -> bytes:
    """Merge requests into one by concatenating their fields."""
    if len(bodies) == 1:
        return bodies[0]
    return compress(b"".join(decompress(body, limit=1 << 30) for body in bodies))


def _has_written(samples: int) -> Callable[[Status], bool]:
    return lambda status: bool(status["figures"]["samples"] >= samples)
