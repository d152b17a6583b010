"""`strandline bench promql`: measures range queries over HTTP on a real node and on peers.

All servers have the same samples, from the same remote-write bytes. The node reads them from Kafka, with the times of
the scrapes as record times, so that it has stored all but the newest bucket. The peers receive them over HTTP. Each
query is sent to all servers in turn. The run fails if their answers differ.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from strandline.clock import Clock, SystemClock, wait_until
from strandline.node.bench.load_report import LoadReport, memory_of, speed_of
from strandline.node.bench.machine import Machine
from strandline.node.bench.peer import Peer
from strandline.node.bench.promql_answers import check_agreement, check_count, check_ranks, series_in
from strandline.node.bench.promql_fleet import PromqlScrapes
from strandline.node.bench.promql_load import KafkaPartition, LoadOptions, LoadTarget, PromqlLoad
from strandline.node.bench.promql_queries import ALIGNED_S, QUERIES, PromqlQuery, QueryRange, ranges, scaling_queries
from strandline.node.bench.promql_report import Cost, PromqlReport, QueryCost
from strandline.node.bench.promql_servers import (
    MeasuredServer,
    MemoryPeak,
    prometheus_launch,
    prometheus_program,
)
from strandline.node.bench.query_bench import peer_at
from strandline.node.bench.query_servers import (
    LOOPBACK,
    PEER_MISSING,
    Launch,
    Server,
    ServerEnded,
    free_port,
    node_launch,
    peer_launch,
    peer_program,
    running,
    wait_until_idle,
)
from strandline.node.bench.replay_bench import fill_partition_at
from strandline.node.bench.scrapes import INTERVAL_MS
from strandline.node.bench.timed_connection import TimedConnection
from strandline.node.settings.writing import write_settings
from strandline.node.stack import Stack, StackOptions
from strandline.node.steps import Step, Steps

TOPIC = "bench"
_HOUR_S = 3600
_FLUSH_S = 3600
# Data before the first step: an hour for windows and subqueries, and ten minutes for a rate in a subquery.
_BEFORE_S = 3600 + 600
# The queries end this long before now, because VictoriaMetrics omits samples of the last half minute.
_BACK_S = 150
# Offsets the steps from full minutes, at which subqueries have their steps: Prometheus 2 includes a sample at the exact
# start of a window, Prometheus 3 and Strandline don't.
_ASIDE_S = 30
_READ_TIMEOUT_S = 3600.0
# A query is measured for this long on all servers together, but with at least the configured number of requests.
_MEASURED_S = 6.0
_MAX_REQUESTS = 200
_WARM_UP = 2
_COUNTS = re.compile(
    r"^strandline_(ingested|stored|unstored)_(?:samples_total|buckets)\{[^}]*\} ([0-9.e+]+)$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class PromqlOptions:
    """The approximate number of series, and the maximum range in hours. Without `peer_urls`, the installed peers are
    started. `peer_pids` are the processes of the peers at URLs, in their order. With a `load`, clients finally query
    the node while it ingests.
    """

    series: int
    hours: int = 1
    requests: int = 5
    peers: bool = True
    peer_urls: tuple[str, ...] = ()
    peer_pids: tuple[int, ...] = ()
    load: LoadOptions | None = None


class PromqlBench:
    """One run, with its own servers in its own folder."""

    def __init__(self, options: PromqlOptions, folder: Path, steps: Steps) -> None:
        self._options, self._folder, self._steps = options, folder, steps
        self._clock: Clock = SystemClock()
        self._end = (self._clock.now_ms() // 1000 - _BACK_S) // ALIGNED_S * ALIGNED_S + _ASIDE_S
        self._begin = self._end - options.hours * _HOUR_S - _BEFORE_S
        self._scrapes = (self._end - self._begin) * 1000 // INTERVAL_MS + 1
        self.series = self._records_written = 0
        self._read_speed = 0.0
        self._generator: PromqlScrapes | None = None
        self._peak_bytes: dict[str, int] = {}

    def run(self) -> PromqlReport:
        """Start the servers, fill them, and measure."""
        with ExitStack() as servers:
            peers = [servers.enter_context(one) for one in self._peers()]
            with self._steps.step("Starting Kafka and Cassandra"):
                options = StackOptions(state_dir=self._folder / "stack", optimise=True)
                stack = servers.enter_context(Stack.start(options))
            return self.run_on(stack, peers)

    def run_on(self, stack: Stack, peers: Sequence[MeasuredServer], topic: str = TOPIC) -> PromqlReport:
        """Fill the servers and measure, with a running stack and a topic that does not exist yet."""
        self._produce(stack, peers, topic)
        with self._node(stack, topic) as node:
            samples, stored = self._wait_until_read(node.server)
            notes = self._wait_until_idle([node, *peers])
            load = os.getloadavg()[0]
            idle = MemoryPeak(node.server).idle
            queries, scaling = self.measure(node, peers)
            rises = {name: max(0, peak - idle.get(name, 0)) for name, peak in self._peak_bytes.items()}
            under_load = self._under_load(stack, topic, node.server)
        if self._options.peers and not peers:
            notes += (PEER_MISSING,)
        return PromqlReport(
            series=self.series,
            samples=samples,
            stored_samples=stored,
            machine=Machine.this(),
            load_average=load,
            peers=tuple(peer.name for peer in peers),
            notes=notes,
            queries=queries,
            scaling=scaling,
            memory=memory_of(idle, rises),
            load=under_load,
        )

    def _under_load(self, stack: Stack, topic: str, node: Server) -> LoadReport | None:
        if self._options.load is None or self._generator is None:
            return None
        target = LoadTarget(
            KafkaPartition(stack.kafka_bootstrap, topic, self._clock), node, self._records_written, self._read_speed
        )
        return PromqlLoad(self._options.load, target, self._generator, self._folder, self._clock).run(self._steps)

    def measure(
        self, node: MeasuredServer, peers: Sequence[MeasuredServer]
    ) -> tuple[tuple[QueryCost, ...], tuple[QueryCost, ...]]:
        """Measure servers that have the data: all queries over each range, and one query over increasing amounts of
        data.
        """
        asked = ranges(self._options.hours, self._end)
        queries = [self._cost(query, each, 1.0, [node, *peers]) for each in asked for query in QUERIES]
        scaling = []
        for share, expression in scaling_queries():
            scaling.append(self._cost(PromqlQuery("sum by (job)", expression), asked[0], share, [node, *peers]))
        for hours in (self._options.hours / 4, self._options.hours) if len(asked) > 1 else ():
            longer = QueryRange(hours, asked[0].steps, self._end)
            scaling.append(self._cost(PromqlQuery("sum by (job)", expression), longer, 1.0, [node, *peers]))
        return tuple(queries), tuple(scaling)

    def _cost(
        self, query: PromqlQuery, asked: QueryRange, share: float, servers: Sequence[MeasuredServer]
    ) -> QueryCost:
        target = asked.target(query.expression)
        with ExitStack() as connections, self._steps.step(f"{query.what}, {asked.hours:g} h") as step:
            links = [connections.enter_context(closing(one.server.connect())) for one in servers]
            results = self._compare(query, target, servers, links)
            began = self._clock.monotonic()
            for _ in range(_WARM_UP):
                for link in links:
                    link.get(target)
            requests = self._request_count((self._clock.monotonic() - began) / _WARM_UP)
            peaks = [MemoryPeak(one.server) for one in servers]
            spent: list[float | None] = [0.0 for _ in servers]
            times: list[list[float]] = [[] for _ in servers]
            for number in range(requests):
                for index in range(len(links)) if number % 2 == 0 else reversed(range(len(links))):
                    # Measured only during the request: its background work between requests depends on the other
                    # servers.
                    before = servers[index].cpu_seconds()
                    times[index].append(links[index].get(target).milliseconds)
                    spent[index] = _add_cpu(spent[index], before, servers[index].cpu_seconds())
            for name, rise in peaks[0].rises().items():
                self._peak_bytes[name] = max(self._peak_bytes.get(name, 0), peaks[0].idle[name] + rise)
            costs = [
                Cost.of(one.name, taken, used, peak.rise())
                for one, taken, used, peak in zip(servers, times, spent, peaks, strict=True)
            ]
            step.note = " against ".join(f"{one.cpu_ms or 0:,.0f}" for one in costs) + " CPU ms"
        return QueryCost(
            query.what,
            query.expression,
            asked.hours,
            asked.steps,
            round(self.series * share),
            results,
            requests,
            costs[0],
            tuple(costs[1:]),
        )

    def _request_count(self, seconds: float) -> int:
        """The number of requests to each server, if one request to all of them takes `seconds`."""
        return max(self._options.requests, min(_MAX_REQUESTS, int(_MEASURED_S / max(seconds, 1e-6))))

    def _compare(
        self,
        query: PromqlQuery,
        target: str,
        servers: Sequence[MeasuredServer],
        links: Sequence[TimedConnection],
    ) -> int:
        """Send the query to each server once, and compare the answers. Returns the number of series."""
        answers = []
        for one, link in zip(servers, links, strict=True):
            answer = link.get(target)
            answers.append(series_in(answer.status, answer.body, query.expression, one.name))
        for peer, theirs in zip(servers[1:], answers[1:], strict=True):
            has_ranks = query.expression.startswith("topk")
            if query.differs_on_victoria_metrics and not peer.is_prometheus:
                # Ranks may differ, since values differ.
                if not has_ranks:
                    check_count(query.expression, len(answers[0]), len(theirs), peer.name)
            else:
                check = check_ranks if has_ranks else check_agreement
                check(query.expression, answers[0], theirs, peer.name)
        return len(answers[0])

    def _peers(self) -> Iterator[AbstractContextManager[MeasuredServer]]:
        options = self._options
        if options.peer_urls:
            pids = (*options.peer_pids, *(None,) * len(options.peer_urls))
            for url, pid in zip(options.peer_urls, pids, strict=False):
                yield nullcontext(_external_peer(url, pid))
        elif options.peers:
            if (program := peer_program()) is not None:
                launch = peer_launch(program, self._home("victoria-metrics"), free_port())
                cached = replace(launch, command=(*launch.command, "-search.disableCache"))
                yield self._started(cached, is_prometheus=False)
            if (program := prometheus_program()) is not None:
                launch = prometheus_launch(program, self._home("prometheus"), free_port())
                yield self._started(launch, is_prometheus=True)

    def _home(self, name: str) -> Path:
        folder = self._folder / name
        folder.mkdir()
        return folder

    @contextmanager
    def _started(self, launch: Launch, *, is_prometheus: bool) -> Iterator[MeasuredServer]:
        with running(launch, self._clock) as server:
            yield MeasuredServer(server, is_prometheus=is_prometheus)

    def _produce(self, stack: Stack, peers: Sequence[MeasuredServer], topic: str) -> None:
        """Send the same bytes to all servers, scrape by scrape."""
        settings = {
            "message.timestamp.type": "CreateTime",
            "message.timestamp.after.max.ms": str(1000 * _FLUSH_S),
            "retention.ms": "-1",
        }
        admin = AdminClient({"bootstrap.servers": stack.kafka_bootstrap})
        for made in admin.create_topics([NewTopic(topic, 1, 1, config=settings)]).values():
            made.result(30)
        with self._steps.step(f"Writing {self._options.series:,} series") as step:
            self._records_written = fill_partition_at(stack.kafka_bootstrap, topic, 0, self._records(peers, step))

    def _records(self, peers: Sequence[MeasuredServer], step: Step) -> Iterator[tuple[bytes, int]]:
        scrapes = PromqlScrapes(self._options.series, 1000 * self._begin)
        self.series, self._generator = scrapes.series, scrapes
        takers = [
            Peer(f"http://{one.server.host}:{one.server.port}/api/v1/write", one.server.pid or 0) for one in peers
        ]
        for number in range(self._scrapes):
            bodies = list(scrapes.next())
            for taker in takers:
                taker.send(bodies)
            time = 1000 * self._begin + (number + 1) * INTERVAL_MS
            yield from ((body, time) for body in bodies)
            step.note = f"scrape {number + 1:,} of {self._scrapes:,}"

    @contextmanager
    def _node(self, stack: Stack, topic: str) -> Iterator[MeasuredServer]:
        port = free_port()
        settings = write_settings(self._folder / "settings.toml", self._settings(stack, topic, port))
        cassandra = tuple(
            one.process.pid for one in stack.record.servers if one.name == "cassandra" and one.process is not None
        )
        with ExitStack() as node:
            with self._steps.step("Starting a node"):
                # Waits for healthy, and not for ready, which it is when it has read nearly everything: reading is
                # timed.
                launch = replace(node_launch(settings, port, self._folder / "node.log"), ready="/-/healthy")
                server = node.enter_context(running(launch, self._clock))
            yield MeasuredServer(server, cassandra)

    def _wait_until_read(self, node: Server) -> tuple[int, int]:
        """Wait until the node has read all samples and stored all complete buckets. Returns the samples read and
        stored.
        """
        wanted, found = self.series * self._scrapes, {"ingested": 0, "stored": 0, "unstored": 0}
        read = list[tuple[float, int]]()
        with (
            self._steps.step("Waiting until the node has read all samples") as step,
            closing(node.connect()) as connection,
        ):

            def is_there() -> bool:
                found.update(_figures(connection.get("/metrics").body.decode()))
                read.append((self._clock.monotonic(), found["ingested"]))
                step.note = f"{found['ingested']:,} of {wanted:,}"
                return found["ingested"] >= wanted and not found["unstored"]

            if not wait_until(is_there, timeout=_READ_TIMEOUT_S, clock=self._clock, poll=0.25):
                raise ServerEnded(f"the node has read {step.note} samples after {_READ_TIMEOUT_S:g} s")
            self._read_speed = speed_of(read, wanted)
        return found["ingested"], found["stored"]

    def _wait_until_idle(self, servers: Sequence[MeasuredServer]) -> tuple[str, ...]:
        # Includes Cassandra: its JVM compiles for some seconds after the load, which takes CPU time from queries.
        with self._steps.step("Waiting until all servers are idle") as step:
            if wait_until_idle([pid for one in servers for pid in one.pids], self._clock):
                return ()
            step.note = "timed out"
        return ("A server was not idle when the queries began.",)

    def _settings(self, stack: Stack, topic: str, port: int) -> dict[str, dict[str, object]]:
        return {
            "kafka": {"bootstrap_servers": [stack.kafka_bootstrap]},
            "cassandra": {
                "contact_points": [stack.cassandra_host],
                "port": stack.cassandra_port,
                "keyspace_copies": 1,
            },
            "dataset": {
                "name": topic,
                "flush_interval": f"{_FLUSH_S}s",
                "grace": "0s",
                "retention": "30d",
                "kafka_retention": "7d",
            },
            "shard": {"data_dir": str(self._folder / "data"), "flush_spread": 0, "buffer_memory": "4g"},
            "http": {"node_address": f"{LOOPBACK}:{port}"},
            "query": {
                "max_series": 1_000_000,
                "max_samples": 1_000_000_000,
                "timeout": "10m",
                # The peers' caches are off as well.
                "result_cache": "0k",
            },
        }


def _external_peer(url: str, pid: int | None) -> MeasuredServer:
    """A peer that was started externally, and has no data."""
    server = replace(peer_at(url), name=url.removeprefix("http://").rstrip("/"), pid=pid)
    with closing(server.connect()) as connection:
        is_victoria = b"vm_app_version" in connection.get("/metrics").body
    return MeasuredServer(server, is_prometheus=not is_victoria)


def _add_cpu(spent: float | None, before: float | None, now: float | None) -> float | None:
    return None if spent is None or before is None or now is None else spent + now - before


def _figures(metrics: str) -> dict[str, int]:
    return {name: round(float(value)) for name, value in _COUNTS.findall(metrics)}
