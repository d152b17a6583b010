"""`strandline bench query` without real servers."""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from strandline.clock import ManualClock, SystemClock
from strandline.node.bench import query_bench, query_servers
from strandline.node.bench.query_bench import (
    BadPeer,
    DifferentAnswers,
    LookupFailed,
    QueryBench,
    QueryOptions,
    peer_at,
    results_in,
)
from strandline.node.bench.query_servers import (
    PEER_MISSING,
    Launch,
    Server,
    ServerEnded,
    free_port,
    peer_launch,
    running,
    wait_until_idle,
)
from strandline.node.steps import LineSteps

pytestmark = pytest.mark.unit


class FixedAnswerServer(ThreadingHTTPServer):
    """Answers each lookup with a number of results or an error, and records the requests."""

    daemon_threads = True

    def __init__(self, name: str, order: list[str], results: int = 3) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.name, self.order, self.results, self.status = name, order, results, 200
        self.requests: list[str] = []
        self.connections: set[object] = set()


class Handler(BaseHTTPRequestHandler):
    server: FixedAnswerServer
    disable_nagle_algorithm = True
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        self.server.order.append(self.server.name)
        self.server.connections.add(self.client_address)
        body = json.dumps({"status": "success", "data": ["x"] * self.server.results}).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


class Pair:
    """Substitutes for a node and a peer, and a benchmark of them."""

    def __init__(self, folder: Path, requests: int = 2) -> None:
        self.order: list[str] = []
        self.node, self.peer = FixedAnswerServer("node", self.order), FixedAnswerServer("peer", self.order)
        self.options = QueryOptions(20_000, requests=requests)
        self.bench = QueryBench(self.options, folder, LineSteps("bench", StringIO(), SystemClock()))

    def server(self, server: FixedAnswerServer) -> Server:
        return Server(server.name, "127.0.0.1", server.server_port)


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    monkeypatch.setattr(query_bench, "wait_until_idle", lambda *_: True)
    servers = Pair(tmp_path)
    with ExitStack() as ending:
        for server in (servers.node, servers.peer):
            ending.enter_context(server)
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            ending.callback(thread.join)
            ending.callback(server.shutdown)
        yield servers


def test_both_servers_get_the_same_requests_in_turn_over_one_connection_per_lookup(pair: Pair) -> None:
    report = pair.bench.measure(pair.server(pair.node), pair.server(pair.peer))
    assert pair.node.requests == pair.peer.requests
    counts = [pair.options.warm_up + figures.requests for figures in report.lookups]
    assert len(pair.node.requests) == sum(counts)
    connections = (len(pair.node.connections), len(pair.peer.connections))
    assert connections == (len(report.lookups), len(report.lookups))
    firsts, start = pair.order[::2], 0
    for count in counts:
        measured = firsts[start + pair.options.warm_up : start + count]
        assert measured == (["node", "peer"] * len(measured))[: len(measured)]
        start += count
    assert {figures.found for figures in report.lookups} == {3}
    assert all(figures.peer is not None for figures in report.lookups)
    assert (report.peer, report.note) == ("peer", "")


def test_all_requests_are_about_the_same_time(pair: Pair) -> None:
    pair.bench.measure(pair.server(pair.node), pair.server(pair.peer))
    ranges = {
        (parameters["start"][0], parameters["end"][0])
        for parameters in (parse_qs(urlsplit(path).query) for path in pair.node.requests)
    }
    assert len(ranges) == 1


def test_another_number_of_results_fails_the_run(pair: Pair) -> None:
    pair.peer.results = 4
    with pytest.raises(DifferentAnswers, match="has 3 results on the node and 4 on the peer"):
        pair.bench.measure(pair.server(pair.node), pair.server(pair.peer))


def test_an_error_fails_the_run(pair: Pair) -> None:
    pair.node.status = 503
    with pytest.raises(LookupFailed, match="was answered with 503"):
        pair.bench.measure(pair.server(pair.node), None)


def test_without_a_peer_the_node_is_measured_alone_and_the_peer_named_as_missing(pair: Pair) -> None:
    report = pair.bench.measure(pair.server(pair.node), None)
    assert (report.peer, report.note) == (None, PEER_MISSING)
    assert "apt-get install victoria-metrics" in report.note
    assert all(figures.peer is None for figures in report.lookups)


def test_only_results_are_counted() -> None:
    assert results_in(200, b'{"status":"success","data":["a","b"]}', "/x") == 2
    for status, body in ((200, b'{"status":"error"}'), (200, b'{"status":"success","data":{}}'), (500, b"no")):
        with pytest.raises(LookupFailed, match=f"/x was answered with {status}"):
            results_in(status, body, "/x")


def test_a_running_peer_is_given_by_its_address() -> None:
    assert peer_at("http://localhost:8428/") == Server("peer", "localhost", 8428)
    for url in ("localhost:8428", "https://localhost", "http://localhost/write"):
        with pytest.raises(BadPeer, match="is not the address of a peer"):
            peer_at(url)


SERVES = (
    "import http.server, sys\n"
    "class Ready(http.server.BaseHTTPRequestHandler):\n"
    "    protocol_version = 'HTTP/1.1'\n"
    "    def do_GET(self):\n"
    "        self.send_response(200 if self.path == '/ready' else 503)\n"
    "        self.send_header('Content-Length', '0')\n"
    "        self.end_headers()\n"
    "http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Ready).serve_forever()\n"
)


def test_a_server_runs_from_ready_to_the_end_of_the_block(tmp_path: Path) -> None:
    port = free_port()
    launch = Launch("it", (sys.executable, "-c", SERVES, str(port)), port, "/ready", tmp_path / "log")
    with running(launch, SystemClock()) as server:
        assert server.pid is not None
        stat = Path(f"/proc/{server.pid}/stat")
        assert stat.exists()
        assert (server.cpu_seconds() or 0) > 0
    assert not stat.exists()


def test_a_server_that_ends_is_reported_with_its_output(tmp_path: Path) -> None:
    script = "import sys; sys.exit('no disk')"
    launch = Launch("it", (sys.executable, "-c", script), free_port(), "/ready", tmp_path / "log")
    with pytest.raises(ServerEnded, match="it ended with exit code 1") as raised, running(launch, SystemClock()):
        pass
    assert "no disk" in raised.value.remedy


def test_the_peer_listens_on_loopback_and_keeps_its_data_in_its_folder(tmp_path: Path) -> None:
    launch = peer_launch("/usr/bin/victoria-metrics", tmp_path, 8428)
    assert "-httpListenAddr=127.0.0.1:8428" in launch.command
    assert f"-storageDataPath={tmp_path / 'data'}" in launch.command
    assert launch.log.parent == tmp_path


def test_servers_are_idle_after_a_period_with_little_cpu_time(monkeypatch: pytest.MonkeyPatch) -> None:
    polls = query_servers._IDLE_POLLS
    readings = [0.0, 1.0, *[2.5] * polls, 3.0, *[3.0 + 0.01 * look for look in range(1, polls + 1)], 9.9]
    clock, spent = ManualClock(), iter(readings)
    monkeypatch.setattr(query_servers, "cpu_seconds", lambda _: next(spent))
    assert wait_until_idle([1], clock)
    assert next(spent) == 9.9, "a merge began after a pause that was too short"


def test_waiting_for_idle_servers_has_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    monkeypatch.setattr(query_servers, "cpu_seconds", lambda _: clock.monotonic())
    assert not wait_until_idle([1], clock)
