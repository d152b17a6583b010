"""An HTTP connection that measures requests from the first byte sent to the last byte received.

Python's HTTP client takes longer to read a response with many chunks than a server takes to create it. So this client
only receives bytes while the time is measured, and parses them afterwards.
"""

import socket
import time
from dataclasses import dataclass

from strandline.errors import Fatal

_RECEIVE_BYTES = 1 << 20
_HEAD_END = b"\r\n\r\n"
_LAST_CHUNK = b"\r\n0\r\n\r\n"


class NotAnswered(Fatal):
    """A server did not answer, or with an invalid HTTP response."""


@dataclass(frozen=True, slots=True)
class TimedAnswer:
    """A response and its latency."""

    milliseconds: float
    status: int
    body: bytes


class TimedConnection:
    """A connection without TLS, for one request at a time. It detects the last chunk of a chunked response by its
    bytes, which is unambiguous because the JSON in the body contains no line breaks.
    """

    def __init__(self, host: str, port: int, timeout_s: float = 120.0) -> None:
        self._host = f"{host}:{port}"
        self._socket = socket.create_connection((host, port), timeout=timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def get(self, target: str, *, kept: int | None = None) -> TimedAnswer:
        """Send a GET request. If `kept` is set, only the last `kept` bytes of a long body are kept; they include the
        lengths of the last chunks. Raises `NotAnswered`.
        """
        request = f"GET {target} HTTP/1.1\r\nHost: {self._host}\r\nAccept: application/json\r\n\r\n".encode("ascii")
        received = bytearray()
        began = time.perf_counter()
        self._socket.sendall(request)
        head = self._head(received)
        length, is_whole = _length(head), True
        if length is None:
            is_whole = self._until_last_chunk(received, len(head), kept)
        else:
            self._until_length(received, len(head) + length)
        took = time.perf_counter() - began
        body = bytes(received[len(head) :])
        return TimedAnswer(1000 * took, _status(head), _unchunked(body) if length is None and is_whole else body)

    def _head(self, received: bytearray) -> bytes:
        while (end := received.find(_HEAD_END)) < 0:
            self._take(received)
        return bytes(received[: end + len(_HEAD_END)])

    def _until_length(self, received: bytearray, length: int) -> None:
        while len(received) < length:
            self._take(received)

    def _until_last_chunk(self, received: bytearray, head: int, kept: int | None) -> bool:
        """Receive the body up to its last chunk. Returns whether all of it was kept."""
        is_whole = True
        # In a response without a body, the last chunk directly follows the head.
        while not received.endswith(_LAST_CHUNK, head - 2):
            if kept is not None and len(received) - head > max(_RECEIVE_BYTES, kept):
                del received[head:-kept]
                is_whole = False
            self._take(received)
        return is_whole

    def _take(self, received: bytearray) -> None:
        try:
            part = self._socket.recv(_RECEIVE_BYTES)
        except OSError as error:
            raise NotAnswered(f"{self._host} did not answer: {error}") from error
        if not part:
            raise NotAnswered(f"{self._host} closed the connection in the middle of an answer")
        received += part


def _status(head: bytes) -> int:
    return int(head.split(b" ", 2)[1])


def _length(head: bytes) -> int | None:
    """The length of the body; None if it is chunked."""
    for line in head.lower().split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name == b"content-length":
            return int(value)
        if name == b"transfer-encoding" and b"chunked" in value:
            return None
    raise NotAnswered("a response has neither Content-Length nor Transfer-Encoding: chunked")


def _unchunked(body: bytes) -> bytes:
    parts: list[bytes] = []
    at = 0
    while True:
        end = body.index(b"\r\n", at)
        size = int(body[at:end].split(b";")[0], 16)
        if size == 0:
            return b"".join(parts)
        parts.append(body[end + 2 : end + 2 + size])
        at = end + 2 + size + 2
