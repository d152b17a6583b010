"""`strandline bench query`: measures lookups of series and labels over HTTP, on a real node and on VictoriaMetrics.

Both have the same series, from the same remote-write bytes: the node reads them from Kafka, and the peer receives them
over HTTP. Each lookup is sent to both alternately, over one connection each, with a short pause before each request,
and for the same time range. The run fails if the numbers of results differ.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit

from strandline.clock import Clock, SystemClock, wait_until
from strandline.errors import ExitCode, Fatal
from strandline.node.bench.machine import Machine
from strandline.node.bench.peer import Peer
from strandline.node.bench.query_fleet import bodies, wider_labels_of
from strandline.node.bench.query_lookups import Lookup, LookupScope, lookups
from strandline.node.bench.query_report import LookupCost, LookupFigures, QueryReport
from strandline.node.bench.query_servers import (
    LOOPBACK,
    PEER_MISSING,
    Server,
    free_port,
    node_launch,
    peer_launch,
    peer_program,
    running,
    wait_until_idle,
)
from strandline.node.bench.replay_bench import fill_partition
from strandline.node.bench.timed_connection import TimedConnection
from strandline.node.settings.writing import write_settings
from strandline.node.shard.kafka_topics import create_topic
from strandline.node.stack import Stack, StackOptions
from strandline.node.steps import Step, Steps

TOPIC = "bench"
_HOUR_S = 3600
_KNOWN_TIMEOUT_S = 1800.0
# A lookup is measured for this long, but with at most this many times the configured number of requests.
_MEASURED_S = 15.0
_MAX_REQUEST_FACTOR = 50
# The pause before each request, so that a server's work after its response does not affect the other one's time.
_PAUSE_S = 0.0005


class DifferentAnswers(Fatal):
    """The servers returned different numbers of results."""


class LookupFailed(Fatal):
    """A server answered a lookup with an error."""


class BadPeer(Fatal):
    """An invalid address of a peer."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """The series, the shards, and the minimum requests of each lookup. Without `peer_url`, a peer is started if it is
    installed.
    """

    series: int
    shards: int = 1
    requests: int = 200
    peer_url: str | None = None

    @property
    def warm_up(self) -> int:
        """The number of warm-up requests. A JVM needs some hundreds until it has compiled the hot code."""
        return self.requests

    def request_count(self, seconds: float) -> int:
        """The number of measured requests, if the warm-up took `seconds`. Quick lookups get more requests, because
        their p99 would otherwise mostly show other activity of the machine.
        """
        in_time = int(self.warm_up * _MEASURED_S / max(seconds, 1e-9))
        return max(self.requests, min(in_time, _MAX_REQUEST_FACTOR * self.requests))


class QueryBench:
    """One run, with its own servers in its own folder."""

    def __init__(self, options: QueryOptions, folder: Path, steps: Steps) -> None:
        self._options, self._folder, self._steps = options, folder, steps
        self._clock: Clock = SystemClock()
        # In the past, so that it is not newer than the current time of either server.
        self._time_s = self._clock.now_ms() // 1000 - 60

    def run(self) -> QueryReport:
        """Start the servers, fill them, and measure."""
        with ExitStack() as servers:
            peer = servers.enter_context(self._peer())
            if peer is not None:
                self._fill_peer(peer)
            with self._steps.step("Starting Kafka and Cassandra"):
                options = StackOptions(state_dir=self._folder / "stack", optimise=True)
                stack = servers.enter_context(Stack.start(options))
            node = servers.enter_context(self._node(stack))
            self._wait_until_known(node)
            return self.measure(node, peer)

    def measure(self, node: Server, peer: Server | None) -> QueryReport:
        """Measure servers that have the data."""
        options, both = self._options, [node] + ([peer] if peer is not None else [])
        with self._steps.step("Waiting until the servers are idle") as step:
            is_idle = wait_until_idle([pid for one in both for pid in one.pids], self._clock)
            step.note = "" if is_idle else "timed out"
        scope = LookupScope(options.series, self._time_s - _HOUR_S, self._time_s + _HOUR_S)
        figures = []
        for lookup in lookups(scope):
            with ExitStack() as connections, self._steps.step(f"Looking up: {lookup.what}") as step:
                # New connections for each lookup, since some servers close a connection after a while.
                links = [connections.enter_context(closing(server.connect())) for server in both]
                figures.append(self._figures(lookup, both, links, step))
        return QueryReport(
            series=options.series,
            labels_a_series=len(wider_labels_of(0)),
            shards=options.shards,
            machine=Machine.this(),
            peer=peer.name if peer is not None else None,
            note=PEER_MISSING if peer is None else "" if is_idle else "A server was not idle when the lookups began.",
            lookups=tuple(figures),
        )

    def _figures(
        self, lookup: Lookup, servers: Sequence[Server], links: Sequence[TimedConnection], step: Step
    ) -> LookupFigures:
        began = self._clock.monotonic()
        for number in range(-self._options.warm_up, 0):
            self._ask_each(lookup.request(number), links, number)
        requests = self._options.request_count(self._clock.monotonic() - began)
        times: list[list[float]] = [[] for _ in links]
        before, found = [server.cpu_seconds() for server in servers], 0
        for number in range(requests):
            answers, found = self._ask_each(lookup.request(number), links, number)
            for kept, milliseconds in zip(times, answers, strict=True):
                kept.append(milliseconds)
        spent = [
            None if one is None else (server.cpu_seconds() or one) - one
            for server, one in zip(servers, before, strict=True)
        ]
        taken = [LookupCost.of(*each) for each in zip(times, spent, strict=True)]
        step.note = " against ".join(f"{each.p50_ms:.2f} ms" for each in taken)
        return LookupFigures(lookup.what, requests, found, taken[0], taken[1] if len(taken) > 1 else None)

    def _ask_each(self, target: str, links: Sequence[TimedConnection], number: int) -> tuple[list[float], int]:
        """Send a request to each server, alternating which is first. Returns the time of each, and the number of
        results.
        """
        times, counts = [0.0] * len(links), [0] * len(links)
        for index in range(len(links)) if number % 2 == 0 else reversed(range(len(links))):
            self._clock.sleep(_PAUSE_S)
            answer = links[index].get(target)
            times[index], counts[index] = answer.milliseconds, results_in(answer.status, answer.body, target)
        if len(set(counts)) > 1:
            raise DifferentAnswers(f"{target} has {counts[0]:,} results on the node and {counts[1]:,} on the peer")
        return times, counts[0]

    @contextmanager
    def _peer(self) -> Iterator[Server | None]:
        url, program = self._options.peer_url, peer_program()
        if url is not None:
            yield peer_at(url)
            return
        if program is None:
            yield None
            return
        folder, port = self._folder / "peer", free_port()
        folder.mkdir()
        with running(peer_launch(program, folder, port), self._clock) as server:
            yield server

    def _fill_peer(self, peer: Server) -> None:
        with self._steps.step(f"Writing {self._options.series:,} series to {peer.name}"):
            url = f"http://{peer.host}:{peer.port}/api/v1/write"
            Peer(url, peer.pid or 0).send(bodies(self._options.series, 1000 * self._time_s))
            with closing(peer.connect()) as connection:
                connection.get("/internal/force_flush")

    @contextmanager
    def _node(self, stack: Stack) -> Iterator[Server]:
        options = self._options
        with self._steps.step(f"Producing {options.series:,} series"):
            self._produce(stack)
        port = free_port()
        settings = write_settings(self._folder / "settings.toml", self._settings(stack, port))
        with ExitStack() as node:
            with self._steps.step("Starting a node"):
                launch = node_launch(settings, port, self._folder / "node.log")
                server = node.enter_context(running(launch, self._clock))
            yield server

    def _produce(self, stack: Stack) -> None:
        """Produce the series. Each body is one record, and a series is in one partition only."""
        kafka, shards = stack.kafka_bootstrap, self._options.shards
        create_topic({"bootstrap.servers": kafka}, TOPIC, partitions=shards, replication=1, retention_ms=7 * 86_400_000)
        for shard in range(shards):
            records = islice(bodies(self._options.series, 1000 * self._time_s), shard, None, shards)
            fill_partition(kafka, TOPIC, shard, records, self._clock.now_ms())

    def _wait_until_known(self, node: Server) -> None:
        series = self._options.series
        with (
            self._steps.step("Waiting until the node knows all series") as step,
            closing(node.connect()) as connection,
        ):
            known = 0

            def all_known() -> bool:
                nonlocal known
                answer = connection.get("/api/v1/status/tsdb?limit=1")
                known = json.loads(answer.body)["data"]["headStats"]["numSeries"] if answer.status == 200 else 0
                step.note = f"{known:,} of {series:,}"
                return known == series

            if not wait_until(all_known, timeout=_KNOWN_TIMEOUT_S, clock=self._clock, poll=1.0):
                raise LookupFailed(f"the node knows {known:,} series of {series:,} after {_KNOWN_TIMEOUT_S:g} s")

    def _settings(self, stack: Stack, port: int) -> dict[str, dict[str, object]]:
        return {
            "kafka": {"bootstrap_servers": [stack.kafka_bootstrap]},
            "cassandra": {
                "contact_points": [stack.cassandra_host],
                "port": stack.cassandra_port,
                "keyspace_copies": 1,
            },
            "dataset": {"name": TOPIC, "flush_interval": "1d", "retention": "30d"},
            "shard": {"data_dir": str(self._folder / "data"), "series_limit": 20_000_000},
            "http": {"node_address": f"{LOOPBACK}:{port}"},
            "query": {"max_names": 20_000_000},
        }


def peer_at(url: str) -> Server:
    """A server that was started externally, and has no other data. Raises `BadPeer`."""
    where = urlsplit(url)
    if where.scheme != "http" or not where.hostname or where.path not in ("", "/"):
        raise BadPeer(f"{url!r} is not the address of a peer", remedy="Pass one such as http://127.0.0.1:8428")
    return Server("peer", where.hostname, where.port or 80)


def results_in(status: int, body: bytes, target: str) -> int:
    """The number of results of an answer. Raises `LookupFailed`."""
    content = json.loads(body) if status == 200 else {}
    if content.get("status") != "success" or not isinstance(content.get("data"), list):
        raise LookupFailed(f"{target} was answered with {status}: {body[:300].decode(errors='replace')}")
    return len(content["data"])
