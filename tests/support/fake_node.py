"""A server in place of a node: records its requests, and returns configured answers."""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit


class FakeNode(ThreadingHTTPServer):
    """Answers each path with the entry of `answers`: a status, a content type and a body."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, tuple[int, str, bytes]] = {}
        self.requests: list[tuple[str, str, list[tuple[str, str]]]] = []
        self.headers: list[dict[str, str]] = []
        self.connections: set[object] = set()
        self.tls = False

    @property
    def url(self) -> str:
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.server_port}"

    def data(self, path: str, data: object, *warnings: str, **more: object) -> None:
        """Answer a path with data."""
        envelope = {"status": "success", "data": data, **({"warnings": warnings} if warnings else {}), **more}
        self.answers[path] = (200, "application/json", json.dumps(envelope).encode())

    def fault(self, path: str, status: int, kind: str, reason: str) -> None:
        """Answer a path with an error."""
        body = {"status": "error", "errorType": kind, "error": reason}
        self.answers[path] = (status, "application/json", json.dumps(body).encode())

    def handle_error(self, *_: object) -> None:
        """Errors are not printed: clients that don't trust our certificate are expected."""


class Handler(BaseHTTPRequestHandler):
    server: FakeNode
    disable_nagle_algorithm = True
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(urlsplit(self.path).query)

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])).decode("ascii"))

    def log_message(self, *_: object) -> None:
        """Requests are not logged."""

    def _answer(self, parameters: str) -> None:
        node, path = self.server, urlsplit(self.path).path
        node.requests.append((self.command, path, parse_qsl(parameters, keep_blank_values=True)))
        node.headers.append(dict(self.headers))
        node.connections.add(self.client_address)
        status, kind, body = node.answers.get(path, (404, "text/plain", b"404 page not found"))
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def fake_node(tls: ssl.SSLContext | None = None) -> Iterator[FakeNode]:
    """A running server."""
    with FakeNode() as node:
        if tls is not None:
            node.socket = tls.wrap_socket(node.socket, server_side=True, do_handshake_on_connect=False)
            node.tls = True
        thread = threading.Thread(target=node.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield node
        finally:
            node.shutdown()
            thread.join()
