"""Sending requests to a peer."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from strandline.node.bench.peer import Peer, PeerRefused

pytestmark = pytest.mark.unit


class Server(ThreadingHTTPServer):
    """Records the requests, and answers as configured."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[tuple[int, bytes]] = []
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.connections: set[object] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/api/v1/write?tenant=1"


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, dict(self.headers), body))
        self.server.connections.add(self.client_address)
        status, text = self.server.answers.pop(0) if self.server.answers else (204, b"")
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        serving = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        yield made
        made.shutdown()
        serving.join(60)


def test_every_body_is_posted_unchanged_over_one_connection(server: Server) -> None:
    bodies = [b"one", b"", b"\x00\xff three"]
    Peer(server.url, os.getpid()).send(iter(bodies))
    assert [body for _, _, body in server.requests] == bodies
    assert {path for path, _, _ in server.requests} == {"/api/v1/write?tenant=1"}
    headers = server.requests[0][1]
    assert headers["Content-Encoding"] == "snappy"
    assert headers["Content-Type"] == "application/x-protobuf"
    assert headers["X-Prometheus-Remote-Write-Version"] == "0.1.0"
    assert len(server.connections) == 1


@pytest.mark.parametrize("status", [200, 204, 299])
def test_any_2xx_response_is_a_success(server: Server, status: int) -> None:
    server.answers = [(status, b"" if status == 204 else b"taken")]
    Peer(server.url, os.getpid()).send([b"one", b"two"])
    assert len(server.requests) == 2


@pytest.mark.parametrize("status", [300, 400, 404, 429, 503])
def test_a_refusal_is_reported_with_the_peers_response_and_ends_the_sending(server: Server, status: int) -> None:
    server.answers = [(204, b""), (status, b"out of bounds \xff" + b"x" * 500)]
    with pytest.raises(PeerRefused, match=f"{status}: out of bounds") as caught:
        Peer(server.url, os.getpid()).send([b"one", b"two", b"three"])
    assert server.url in caught.value.message
    assert len(caught.value.message) < 400
    assert "remote-write" in caught.value.remedy
    assert len(server.requests) == 2


def test_a_missing_peer_is_reported() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/write"
        with pytest.raises(PeerRefused, match=r"does not answer: .*refused"):
            Peer(url, os.getpid()).send([b"one"])


@pytest.mark.parametrize("answer", [b"", b"I speak no HTTP\r\n\r\n"])
def test_a_peer_with_another_protocol_is_reported(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer_once() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(answer)

        answering = threading.Thread(target=answer_once)
        answering.start()
        with pytest.raises(PeerRefused, match="does not answer"):
            Peer(f"http://127.0.0.1:{listening.getsockname()[1]}/", os.getpid()).send([b"one"])
        answering.join(60)


def test_its_cpu_time_is_that_of_its_process() -> None:
    tick = 1 / os.sysconf("SC_CLK_TCK")
    before = os.times()
    cpu = Peer("http://localhost/", os.getpid()).cpu_seconds()
    after = os.times()
    assert before.user + before.system - 2 * tick <= cpu <= after.user + after.system + 2 * tick


def test_its_process_may_have_any_name() -> None:
    comm = Path("/proc/self/comm")
    name = comm.read_text(encoding="utf-8").strip()
    peer = Peer("http://localhost/", os.getpid())
    before = peer.cpu_seconds()
    try:
        comm.write_text("a) S 1 (b", encoding="utf-8")
        assert before <= peer.cpu_seconds() < before + 60
    finally:
        comm.write_text(name, encoding="utf-8")


def test_a_process_that_has_ended_is_reported() -> None:
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", ""])
    process.wait(60)
    with pytest.raises(PeerRefused, match=f"there is no process {process.pid}"):
        Peer("http://localhost/", process.pid).cpu_seconds()


def test_a_process_that_ends_during_the_read_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> str:
        raise ProcessLookupError(3, "No such process")

    monkeypatch.setattr(Path, "read_text", fail)
    with pytest.raises(PeerRefused, match="there is no process"):
        Peer("http://localhost/", os.getpid()).cpu_seconds()
